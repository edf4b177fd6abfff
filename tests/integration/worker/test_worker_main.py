"""`python -m worker` as an operator sees it."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from tests.faults.servers import Server
from tests.integration.service import free_port

ROOT = Path(__file__).resolve().parents[3]
START_S = 30.0
SECRET = "not-for-anyone"


def start(folder: Path, **settings: str) -> "subprocess.Popen[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    ours = {f"ASSAY_{name.upper()}": value for name, value in settings.items()}
    return subprocess.Popen(
        [sys.executable, "-m", "worker"],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT), "ASSAY_DATA_DIR": str(folder / "data")} | ours,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def waiting_worker(folder: Path, url: str) -> "Iterator[subprocess.Popen[str]]":
    """Run a worker whose Redis can't be used yet; begins when it says so."""
    process = start(folder, redis_url=url, worker_metrics_port="0")
    try:
        assert says(process, "waiting_for_redis")
        yield process
    finally:
        process.kill()
        process.communicate()


def says(process: "subprocess.Popen[str]", event: str) -> bool:
    """Wait until it logs this event; False when it ends before."""
    assert process.stderr is not None
    return any(event in line for line in process.stderr)


def ends(process: "subprocess.Popen[str]") -> int:
    """Ask it to stop; returns its exit status."""
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=START_S)
    return process.returncode


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("worker_concurrency", SECRET),
        ("worker_grace_s", "-1"),
        ("worker_metrics_port", "70000"),
        ("redis_url", f"http://{SECRET}@127.0.0.1/"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line(tmp_path: Path, name: str, value: str) -> None:
    process = start(tmp_path, **{name: value})
    said, complained = process.communicate(timeout=START_S)
    assert process.returncode == 2
    assert said == ""
    (line,) = complained.splitlines()
    assert line.startswith(f"ASSAY_{name.upper()}: ")
    assert SECRET not in line


def test_a_worker_that_is_there_before_its_redis_waits_for_it(tmp_path: Path) -> None:
    port = free_port()
    with (
        waiting_worker(tmp_path, f"redis://127.0.0.1:{port}") as process,
        Server("valkey", tmp_path / "server", port=str(port)) as server,
    ):
        assert says(process, "worker_started")
        with redis.Redis.from_url(server.url) as client:
            assert client.scard("rq:workers") == 1
        assert ends(process) == 0


def test_a_worker_waits_for_a_redis_that_takes_no_writes(tmp_path: Path) -> None:
    with (
        Server("valkey", tmp_path / "server", maxmemory="1") as server,
        redis.Redis.from_url(server.url) as client,
        waiting_worker(tmp_path, server.url) as process,
    ):
        client.config_set("maxmemory", 0)
        assert says(process, "worker_started")
        assert ends(process) == 0


def test_a_redis_that_does_not_know_us_stops_the_start_with_a_line_without_the_password(
    tmp_path: Path, valkey_url: str
) -> None:
    path = valkey_url.removeprefix("unix://")
    process = start(tmp_path, redis_url=f"unix://stranger:{SECRET}@{path}", worker_metrics_port="0")
    said, complained = process.communicate(timeout=START_S)
    assert process.returncode == 1
    assert "ASSAY_REDIS_URL" in complained.splitlines()[-1]
    assert SECRET not in said + complained


def test_a_worker_shows_itself_and_its_metrics_and_stops_when_told(
    tmp_path: Path, valkey_url: str, client: redis.Redis
) -> None:
    port = free_port()
    process = start(tmp_path, redis_url=valkey_url, worker_metrics_port=str(port))
    give_up = time.monotonic() + START_S
    while not client.scard("rq:workers") and time.monotonic() < give_up:
        time.sleep(0.05)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        assert b"assay_" in answer.read()
    process.send_signal(signal.SIGTERM)
    _, logged = process.communicate(timeout=START_S)
    assert process.returncode == 0
    assert "worker_stopped" in logged
    assert client.scard("rq:workers") == 0
