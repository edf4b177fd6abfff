"""The API as a process: how it starts, how it stops, and what importing it costs."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.contract.shapes import run, unique
from tests.integration.service import ROOT, Service

# What only a serving process needs; the command line imports app.main and should not wait for them.
HEAVY = ("app.adapters", "app.wiring", "app.scorers", "fastapi", "uvicorn", "httpx", "aiohttp", "redis", "rq", "lingua")


@pytest.fixture
def service(valkey_server: EmbeddedValkey, tmp_path: Path) -> Service:
    return Service(valkey_server.url, tmp_path, workers=0, delay_ms=300)


def test_sigterm_finishes_what_runs_and_takes_nothing_new(service: Service) -> None:
    with service:
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(service.score(output=unique())))
        asking.start()
        while not service.judge_calls():
            pass
        assert service.api is not None
        service.api.child.terminate()
        asking.join(20)
        assert run(answers[0], 200)["status"] == "completed"
        assert service.api.child.wait(20) == 0
        with pytest.raises(httpx.ConnectError):
            service.client.get("/livez")


def test_logs_are_json_lines_without_an_access_log(service: Service) -> None:
    with service:
        run(service.score(output=unique("canary")), 200)
        service.client.get("/nothing/canary")
        assert service.api is not None
        service.api.stop()
        lines = service.api.log.read_text().splitlines()
    assert all(line.startswith("{") for line in lines), lines
    assert any('"event": "run_finished"' in line for line in lines)
    assert not any("canary" in line or "/livez" in line for line in lines)


def test_a_wrong_setting_is_one_line(service: Service) -> None:
    environment = service.environment() | {"ASSAY_PORT": "canary"}
    ended = subprocess.run(  # noqa: PLW1510
        [sys.executable, "-m", "app.cli", "serve"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "ASSAY_PORT" in ended.stderr
    assert "canary" not in ended.stderr


def test_importing_the_process_loads_nothing_that_only_a_server_needs() -> None:
    code = "import sys, app.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not set(HEAVY) & set(loaded.split())


@pytest.mark.parametrize(("host", "taken"), [("127.0.0.1", True), ("999.1.1.1", False)])
def test_an_address_that_cannot_be_had_is_one_line(
    valkey_server: EmbeddedValkey, tmp_path: Path, host: str, taken: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        service = Service(valkey_server.url, tmp_path, workers=0, host=host)
        environment = service.environment() | ({"ASSAY_PORT": str(other.getsockname()[1])} if taken else {})
        environment["ASSAY_JUDGE_BASE_URL"] = "http://127.0.0.1:9/v1"
        ended = subprocess.run(
            [sys.executable, "-m", "app.cli", "serve"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "ASSAY_PORT" in ended.stderr
