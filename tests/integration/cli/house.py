"""`assay up` as a user starts it, in a folder of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from app.adapters.providers import PROVIDERS
from app.cli.plan import free_port

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0
KEYS = {provider.key_variable for provider in PROVIDERS.values()}


class House:
    """Runs `assay up`; leaving ends it. `settings` become ASSAY_* variables, `environment` is added as it is."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None, **settings: object) -> None:
        self.folder = folder
        self.port = free_port("127.0.0.1")
        self.url = f"http://127.0.0.1:{self.port}"
        named = {"PORT": self.port, "WORKER_METRICS_PORT": 0} | {
            name.upper(): value for name, value in settings.items()
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_") and name not in KEYS}
        self.environment = kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "200", **(environment or {})}
        self.environment |= {f"ASSAY_{name}": str(value) for name, value in named.items()}
        self.out, self.err = folder / "out.txt", folder / "err.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        self.wait_for("Try it:")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)

    def start(self) -> None:
        """Start it without waiting."""
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app.cli", "up"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                # A test run under nohup would hand on that hang-ups are ignored.
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 - one thread here
            )

    def wait_for(self, words: str) -> None:
        """Wait until it has printed these words."""
        assert self.process is not None
        deadline = time.monotonic() + PATIENCE_S
        while words not in self.printed():
            if self.process.poll() is not None or time.monotonic() > deadline:
                logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("data/logs/*.log"))
                raise AssertionError(
                    f"never said {words!r} (exit code {self.process.poll()}):\n{self.printed()}\n{logs}"
                )
            time.sleep(0.02)

    def end(self, how: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)

    def printed(self) -> str:
        """What it has printed so far, complaints included."""
        return self.out.read_text(encoding="utf-8") + self.err.read_text(encoding="utf-8")

    def pids(self) -> dict[str, int]:
        """Its processes by the name that the block gives them."""
        return {name: int(pid) for name, pid in re.findall(r"^  (\w+) .* pid (\d+)$", self.printed(), re.MULTILINE)}

    def descendants(self) -> set[int]:
        """Every process that it started, and that those started."""
        assert self.process is not None
        parents: dict[int, int] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(stat.parent.name)] = int(fields[1])
        found = {self.process.pid}
        while grown := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= grown
        return found - {self.process.pid}

    def client(self) -> httpx.Client:
        """A client of its API."""
        return httpx.Client(base_url=self.url, timeout=PATIENCE_S, trust_env=False)
