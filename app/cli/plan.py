"""What `assay up` runs: the commands, their environment and where they listen."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import app
from app.cli.child import Command
from app.cli.judge_choice import JudgeChoice
from app.lifeline import DRAIN_MARGIN_S
from app.settings import Settings

SOURCE = Path(app.__file__).parents[1]
LOOPBACK = "127.0.0.1"
ANY_ADDRESS = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 - what to call, not what to bind
LOCAL_CONTEXT_TOKENS = 8192
LOCAL_OUTPUT_TOKENS = 1024
LOCAL_TIMEOUT_S = 180.0
# Per process: one is answered, one waits at the model, the others here, where no call's time runs yet.
LOCAL_IN_FLIGHT = 2
JUDGE_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes in the order they start; `url` is where callers reach the API, `judge_url` the local judge."""

    url: str
    judge_url: str | None
    judge: Command | None
    api: Command
    workers: tuple[Command, ...]

    @property
    def commands(self) -> tuple[Command, ...]:
        """All of them."""
        return (*((self.judge,) if self.judge else ()), self.api, *self.workers)


def make_plan(settings: Settings, choice: JudgeChoice, redis_url: str, environ: Mapping[str, str]) -> Plan:
    """Lay out the processes for these settings; free ports are chosen here."""
    port = settings.port or free_port(settings.host)
    judge_port = free_port(LOOPBACK) if choice.local else None
    context = settings.judge_context_tokens or LOCAL_CONTEXT_TOKENS
    python = _python_environment(environ)
    shared = {
        **python,
        "ASSAY_PORT": str(port),
        "ASSAY_REDIS_URL": redis_url,
        **_judge_environment(settings, choice, judge_port, context),
    }
    follow = "--follow-stdin"
    drain_s = settings.inline_wait_s + DRAIN_MARGIN_S
    work_s = settings.worker_grace_s + DRAIN_MARGIN_S
    return Plan(
        url=url_of(settings.host, port),
        judge_url=f"http://{LOOPBACK}:{judge_port}" if judge_port else None,
        judge=_judge_command(choice, judge_port, context, python) if judge_port else None,
        api=Command("api", ("app.cli", "serve", follow), shared, drain_s),
        workers=tuple(
            Command(f"worker-{number}", ("app.cli", "worker", follow), shared, work_s)
            for number in range(1, settings.workers + 1)
        ),
    )


def _python_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with this checkout or installation importable from wherever the user stands."""
    path = os.pathsep.join(filter(None, (str(SOURCE), environ.get("PYTHONPATH"))))
    return {**environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def _judge_environment(settings: Settings, choice: JudgeChoice, port: int | None, context: int) -> dict[str, str]:
    if choice.model_id is None:
        return {}
    environment = {"ASSAY_JUDGE_MODEL": choice.model_id}
    if port is None:
        return environment
    return environment | {
        "ASSAY_JUDGE_BASE_URL": f"http://{LOOPBACK}:{port}/v1",
        "ASSAY_JUDGE_CONTEXT_TOKENS": str(context),
        "ASSAY_JUDGE_MAX_OUTPUT_TOKENS": str(settings.judge_max_output_tokens or LOCAL_OUTPUT_TOKENS),
        "ASSAY_JUDGE_MAX_IN_FLIGHT": str(min(settings.judge_max_in_flight, LOCAL_IN_FLIGHT)),
        "ASSAY_JUDGE_TIMEOUT_S": str(max(settings.judge_timeout_s, LOCAL_TIMEOUT_S)),
    }


def _judge_command(choice: JudgeChoice, port: int, context: int, environ: Mapping[str, str]) -> Command:
    model = choice.local
    if model is None:
        raise ValueError("only a local judge has a command")
    options = {
        "--model": model.path.absolute(),
        "--port": port,
        "--context-tokens": context,
        "--repeat-penalty": model.repeat_penalty,
    }
    arguments = (str(word) for option in options.items() for word in option)
    return Command("judge", ("app.adapters.local_model", *arguments, "--follow-stdin"), environ, JUDGE_GRACE_S)


def free_port(host: str) -> int:
    """Return a port that nobody listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def url_of(host: str, port: int) -> str:
    """Return where a caller on this machine reaches a server that listens there."""
    address = ANY_ADDRESS.get(host, host)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
