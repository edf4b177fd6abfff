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
        self.command = command
        self.environment = environment
        self.log = log
        self.output = log.open("ab")
        self.child = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self.output, stderr=self.output, stdin=subprocess.DEVNULL
        )

    @property
    def alive(self) -> bool:
        """Whether it still runs (or is frozen)."""
        return self.child.poll() is None

    def freeze(self) -> None:
        """Stop it where it stands, as a machine does that is suspended."""
        self.child.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.child.send_signal(signal.SIGCONT)

    def again(self) -> "Process":
        """Return a new process with the same command, environment and log."""
        return Process(self.command, self.environment, self.log)

    def kill(self) -> None:
        """End it as a crash would."""
        self.child.kill()
        self.child.wait(STOP_S)
        self.output.close()

    def stop(self) -> int:
        """Ask it to stop, and return its exit status."""
        if self.alive:
            self.child.send_signal(signal.SIGCONT)
            self.child.send_signal(signal.SIGTERM)
        try:
            status = self.child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            status = self.child.wait()
        self.output.close()
        return status


class Service:
    """`with Service(redis_url, tmp_path) as service:` runs stub, APIs and workers; leaving stops them all.

    `client` speaks to the first API, `clients` to each; `worker_module` is what `python -m` runs as a worker.
    """

    def __init__(
        self,
        redis_url: str,
        folder: Path,
        *,
        workers: int = 1,
        apis: int = 1,
        delay_ms: float = 0.0,
        worker_module: str = "worker",
        **settings: str,
    ) -> None:
        self.folder = folder
        self.stub = StubProcess(delay_ms=delay_ms)
        self.worker_count = workers
        self.worker_module = worker_module
        self.ports = [free_port() for _ in range(apis)]
        self.redis_url = redis_url
        self.settings = settings
        self.apis: list[Process] = []
        self.workers: list[Process] = []
        self.clients = [
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) for port in self.ports
        ]
        self.client = self.clients[0]

    @property
    def port(self) -> int:
        """Where the first API listens."""
        return self.ports[0]

    @property
    def api(self) -> Process:
        """The first API."""
        return self.apis[0]

    @api.setter
    def api(self, process: Process) -> None:
        self.apis[0] = process

    def __enter__(self) -> Self:
        self.stub.__enter__()
        try:
            self.apis = [self.start_api(number) for number in range(len(self.ports))]
            self.workers = [self.start_worker() for _ in range(self.worker_count)]
            self.wait_until_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self.clients:
            client.close()
        for process in [*self.workers, *self.apis]:
            process.stop()
        self.stub.__exit__(kind, error, trace)

    def environment(self, port: int | None = None) -> dict[str, str]:
        """The environment of every child; `port` is an API's, by default the first one's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        return kept | {
            "ASSAY_PORT": str(self.port if port is None else port),
            "ASSAY_REDIS_URL": self.redis_url,
            "ASSAY_JUDGE_MODEL": "stub/judge",
            "ASSAY_JUDGE_BASE_URL": self.stub.base_url,
            "ASSAY_WORKER_METRICS_PORT": "0",
            **{f"ASSAY_{name.upper()}": value for name, value in self.settings.items()},
        }

    def start_api(self, number: int = 0) -> Process:
        """Start one API process, on its own port."""
        command = [sys.executable, "-m", "app.cli", "serve"]
        return Process(command, self.environment(self.ports[number]), self.folder / f"api-{number}.log")

    def start_worker(self) -> Process:
        """Start one worker process."""
        return Process([sys.executable, "-m", self.worker_module], self.environment(), self.folder / "worker.log")

    def wait_until_ready(self) -> None:
        """Wait until /readyz of every API is green and every worker is alive."""
        deadline = time.monotonic() + START_S
        for client, api in zip(self.clients, self.apis, strict=True):
            while not self._is_ready(client):
                if not api.alive:
                    raise RuntimeError(f"the API ended:\n{api.log.read_text()[-3000:]}")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the service is not ready:\n{self.said()}")
                time.sleep(LOOK_AGAIN_S)

    def said(self) -> str:
        """Return the last that all processes logged."""
        return "\n".join(path.read_text()[-3000:] for path in self.folder.glob("*.log"))

    def _is_ready(self, client: httpx.Client) -> bool:
        try:
            ready = client.get("/readyz")
        except httpx.TransportError:
            return False
        return ready.status_code == 200 and self._workers_alive(ready.json())

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
