"""A whole Assay for tests: API and worker processes on a real Valkey, judged by the stub over HTTP."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.stub_judge.process import StubProcess

ROOT = Path(__file__).resolve().parents[2]
START_S = 20.0
STOP_S = 40.0
LOOK_AGAIN_S = 0.05


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """One child of the service, its output kept for the report of a failed test."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        self.output = log.open("ab")
        self.child = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self.output, stderr=self.output, stdin=subprocess.DEVNULL
        )

    def kill(self) -> None:
        """End it as a crash would."""
        self.child.kill()
        self.child.wait(STOP_S)
        self.output.close()

    def stop(self) -> int:
        """Ask it to stop, and return its exit status."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            status = self.child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            status = self.child.wait()
        self.output.close()
        return status


class Service:
    """`with Service(redis_url, tmp_path) as service:` runs stub, API and workers; leaving stops them all."""

    def __init__(
        self, redis_url: str, folder: Path, *, workers: int = 1, delay_ms: float = 0.0, **settings: str
    ) -> None:
        self.folder = folder
        self.stub = StubProcess(delay_ms=delay_ms)
        self.worker_count = workers
        self.port = free_port()
        self.redis_url = redis_url
        self.settings = settings
        self.api: Process | None = None
        self.workers: list[Process] = []
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60, trust_env=False)

    def __enter__(self) -> Self:
        self.stub.__enter__()
        try:
            self.api = self.start_api()
            self.workers = [self.start_worker() for _ in range(self.worker_count)]
            self.wait_until_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        for process in [*self.workers, *([self.api] if self.api else [])]:
            process.stop()
        self.stub.__exit__(kind, error, trace)

    def environment(self) -> dict[str, str]:
        """The environment of every child."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        return kept | {
            "ASSAY_PORT": str(self.port),
            "ASSAY_REDIS_URL": self.redis_url,
            "ASSAY_JUDGE_MODEL": "stub/judge",
            "ASSAY_JUDGE_BASE_URL": self.stub.base_url,
            "ASSAY_WORKER_METRICS_PORT": "0",
            **{f"ASSAY_{name.upper()}": value for name, value in self.settings.items()},
        }

    def start_api(self) -> Process:
        """Start one API process."""
        return Process([sys.executable, "-m", "app.cli", "serve"], self.environment(), self.folder / "api.log")

    def start_worker(self) -> Process:
        """Start one worker process."""
        return Process([sys.executable, "-m", "worker"], self.environment(), self.folder / "worker.log")

    def wait_until_ready(self) -> None:
        """Wait until /readyz is green and every worker is alive."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.api is not None and self.api.child.poll() is not None:
                raise RuntimeError(f"the API ended:\n{self.api.log.read_text()[-3000:]}")
            try:
                ready = self.client.get("/readyz")
            except httpx.TransportError:
                time.sleep(LOOK_AGAIN_S)
                continue
            if ready.status_code == 200 and self._workers_alive(ready.json()):
                return
            time.sleep(LOOK_AGAIN_S)
        logs = "\n".join(path.read_text()[-3000:] for path in self.folder.glob("*.log"))
        raise RuntimeError(f"the service is not ready:\n{logs}")

    def _workers_alive(self, ready: dict[str, Any]) -> bool:
        return self.worker_count == 0 or any(
            check["name"] == "workers" and check["detail"].startswith(str(self.worker_count))
            for check in ready["checks"]
        )

    def score(self, scorer: str = "bias", headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        """POST one text to one scorer."""
        return self.client.post(f"/v1/scorers/{scorer}/runs", json=body, headers=headers)

    def run(self, run_id: str, wait: int = 20) -> dict[str, Any]:
        """Return a run when it ended, or as it stands after `wait` seconds."""
        return self.client.get(f"/v1/runs/{run_id}", params={"wait": wait}).raise_for_status().json()

    def judge_calls(self) -> int:
        """How many calls the stub has had since its last reset."""
        return int(self.stub.calls()["total"])
