"""A process that `assay up` keeps running."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.cli.console import USAGE_EXIT

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
STEADY_S = 60.0
LAST_WORDS = 5
TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Command:
    """How to run it: `python -m *arguments`; secrets travel in `environment` only. `grace_s`: SIGTERM to SIGKILL."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    grace_s: float


class Child:
    """Starts a command, starts it again with growing pauses when it dies, and ends it when told.

    What it prints goes to `log`. It gets a session of its own, so that Ctrl-C in the terminal reaches only the owner,
    and a pipe as standard input, by which it learns of the owner's death (see `app.lifeline`).
    """

    def __init__(self, command: Command, log: Path, report: Callable[[str], None]) -> None:
        self.command = command
        self.log = log
        self.deaths = 0
        self.last_exit: int | None = None
        self._report = report
        self._process: Process | None = None
        self._stop = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The process, or None between two starts."""
        return self._process.pid if self._process and self._process.returncode is None else None

    @property
    def mistaken(self) -> bool:
        """Whether it ended because a setting is wrong."""
        return self.last_exit == USAGE_EXIT

    async def keep_running(self) -> None:
        """Run the command until `stop`; a new start after half a second, then twice as long each time, 30 s at most.

        Returns early when the command says that its settings are wrong, which no new start can help.
        """
        loop = asyncio.get_running_loop()
        delay = FIRST_DELAY_S
        while not self._stop.is_set():
            started = loop.time()
            ending = await self._run_once()
            if self._stop.is_set() or self.mistaken:
                return
            self.deaths += 1
            if loop.time() - started > STEADY_S:
                delay = FIRST_DELAY_S
            self._report(f"{self.command.name} {ending}; starting it again in {delay:g} s (log: {self.log})")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), delay)
            delay = min(delay * 2, LONGEST_DELAY_S)

    async def stop(self) -> None:
        """Ask the process to end, and end it hard when its grace is over."""
        self._stop.set()
        if self._process and self._process.returncode is None:
            await self._end(self._process)

    async def _run_once(self) -> str:
        """Start the command and return how it ended."""
        try:
            self._process = await self._start()
        except OSError as error:
            return f"could not be started ({error.strerror})"
        if self._stop.is_set():
            await self._end(self._process)
        self.last_exit = code = await self._process.wait()
        if code < 0:
            return f"was ended by signal {-code} ({signal.strsignal(-code)})"
        return f"ended with code {code}"

    async def _end(self, process: Process) -> None:
        self._send(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), self.command.grace_s)
        except TimeoutError:
            self._report(f"{self.command.name} did not end within {self.command.grace_s:g} s and was killed")
            self._send(signal.SIGKILL)
            await process.wait()

    def kill(self) -> None:
        """End the process at once."""
        self._stop.set()
        self._send(signal.SIGKILL)

    def last_words(self) -> list[str]:
        """Return the last lines of the log."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
                return log.read().decode(errors="replace").splitlines()[-LAST_WORDS:]
        except FileNotFoundError:
            return []

    async def _start(self) -> Process:
        descriptor = os.open(self.log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                # Without it a folder named `app` where the user stands would be run instead of ours.
                "-P",
                "-m",
                *self.command.arguments,
                env=dict(self.command.environment),
                stdin=PIPE,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
        finally:
            os.close(descriptor)

    def _send(self, number: signal.Signals) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
