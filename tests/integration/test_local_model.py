"""The real local model: a process of its own on loopback, whose replies fit the schema they were asked for."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import orjson
import pytest
from prometheus_client import CollectorRegistry

from app.adapters.clock import SystemClock
from app.adapters.judge_models import load_models
from app.adapters.local_model import can_serve, demonstration_model
from app.cli.plan import LOCAL_CONTEXT_TOKENS, free_port
from app.observe.metrics import PrometheusTelemetry
from app.ports import FinishReason, Prompt
from app.settings import Settings

pytestmark = [pytest.mark.local_model, pytest.mark.anyio]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
LABELS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdicts"],
    "properties": {
        "verdicts": {
            "type": "array",
            "minItems": 3,
            "maxItems": 3,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["reason", "result"],
                "properties": {
                    "reason": {"type": "string", "maxLength": 80},
                    "result": {"type": "string", "enum": ["yes", "no"]},
                },
            },
        }
    },
}


class Served:
    """The model's process and where it answers."""

    def __init__(self) -> None:
        model = demonstration_model()
        assert can_serve(), "the extra `local` is not installed: make dev"
        assert model is not None, "the demonstration model is not installed: make dev"
        self.port = free_port("127.0.0.1")
        options = ("--model", str(model.path), "--port", str(self.port), "--context-tokens", str(LOCAL_CONTEXT_TOKENS))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app.adapters.local_model", *options, "--follow-stdin"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.url = f"http://127.0.0.1:{self.port}"

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.end()
            try:
                if httpx.get(f"{self.url}/health", trust_env=False).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the model was not served in time")

    def end(self) -> bytes:
        """Close its standard input, and return what it printed once it has ended."""
        _, printed = self.process.communicate(timeout=PATIENCE_S)
        return printed


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    served = Served()
    served.wait_until_ready()
    yield served
    served.end()


async def test_a_reply_fits_its_schema(served: Served) -> None:
    settings = Settings(_env_file=None, judge_model="local/smollm2-135m", judge_base_url=f"{served.url}/v1")
    clock = SystemClock()
    models = load_models(settings, clock, PrometheusTelemetry(CollectorRegistry(), scorers=()), environ={})
    prompt = Prompt(
        system="Decide for each of the three sentences whether it is biased. Answer with JSON.",
        user="[1] The bus leaves at nine.\n[2] Old people never learn.\n[3] I liked the film.",
        schema=LABELS,
        name="labels",
        max_tokens=512,
    )
    try:
        completion = await models.get("local/smollm2-135m").complete(prompt, deadline=clock.monotonic() + PATIENCE_S)
    finally:
        await models.aclose()
    assert completion.finish is FinishReason.STOP
    jsonschema.validate(orjson.loads(completion.text), LABELS)
    assert completion.input_tokens > 0
    assert completion.output_tokens > 0


def test_it_listens_on_loopback_only(served: Served) -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("needs /proc")
    listening: list[str] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            address, _, port = local.partition(":")
            if state == "0A" and int(port, 16) == served.port:
                listening.append(address)
    assert listening == [socket.inet_aton("127.0.0.1")[::-1].hex().upper()]


def test_no_page_of_another_origin_may_read_it(served: Served) -> None:
    answer = httpx.get(f"{served.url}/v1/models", headers={"Origin": "https://elsewhere.example"}, trust_env=False)
    assert answer.is_success
    assert not answer.headers.get("access-control-allow-origin")


def test_nothing_that_is_scored_is_printed() -> None:
    served = Served()
    served.wait_until_ready()
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "canary-7391 " * 3}], "max_tokens": 4}
    httpx.post(f"{served.url}/v1/chat/completions", json=body, timeout=PATIENCE_S, trust_env=False).raise_for_status()
    assert b"canary-7391" not in served.end()


@pytest.mark.parametrize("how", ["standard input closes", "SIGTERM", "SIGINT"])
def test_it_ends_when(how: str) -> None:
    served = Served()
    served.wait_until_ready()
    if how != "standard input closes":
        served.process.send_signal(getattr(signal, how))
    served.end()
    assert served.process.returncode == os.EX_OK


def test_a_call_under_way_does_not_keep_it() -> None:
    served = Served()
    served.wait_until_ready()
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Count."}], "max_tokens": 3000, "ignore_eos": True}
    stream = {"stream": True, **body}
    with httpx.stream("POST", f"{served.url}/v1/chat/completions", json=stream, trust_env=False) as answer:
        next(answer.iter_lines())
        served.end()
    assert served.process.returncode == os.EX_OK


def test_a_file_that_is_no_model_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 64)
    options = ("--model", str(path), "--port", "0", "--context-tokens", "2048")
    ended = subprocess.run(
        [sys.executable, "-m", "app.adapters.local_model", *options],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.strip().splitlines()[-1].startswith(str(path))
