"""Real worker processes, and what they note in Redis."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import redis

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 20.0
LOOK_AGAIN_S = 0.02


class WorkerProcesses:
    """Starts processes of `program` and ends those that a test left."""

    def __init__(self, url: str, client: redis.Redis, log: Path) -> None:
        self._url = url
        self._client = client
        self._log = log
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, *, concurrency: int = 8, grace_s: float = 20.0) -> "subprocess.Popen[bytes]":
        """Start one more worker and wait until it is registered."""
        before = self.registered()
        environment = os.environ | {
            "TEST_REDIS_URL": self._url,
            "TEST_CONCURRENCY": str(concurrency),
            "TEST_GRACE_S": str(grace_s),
        }
        with self._log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.worker.program"],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=output,
            )
        self._processes.append(process)
        self.until(lambda: self.registered() == before + 1)
        return process

    def registered(self) -> int:
        """How many workers RQ knows."""
        return self._client.scard("rq:workers")

    def notes(self, kind: str) -> list[str]:
        """Return the ids that runs noted as `begun` or `ended`."""
        return [note.decode() for note in self._client.lrange(kind, 0, -1)]

    def release(self) -> None:
        """Let runs that hold end."""
        self._client.set("go", 1)

    def said(self) -> bytes:
        """Return what the workers logged."""
        return self._log.read_bytes()

    def until(self, condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait until a condition holds, looking often."""
        give_up = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > give_up:
                raise AssertionError(f"it did not come about; the workers said:\n{self._log.read_text()[-3000:]}")
            time.sleep(LOOK_AGAIN_S)

    def end(self) -> None:
        """End what still runs."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
