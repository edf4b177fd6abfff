"""Keeps the processes of `assay up` running, from the first start to the last goodbye."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence

from app.cli.child import Child
from app.cli.console import USAGE_EXIT

DEATHS_BEFORE_GIVING_UP = 3
READY_TIMEOUT_S = 120.0
READY_POLL_S = 0.1


class StartFailed(Exception):
    """A process dies again and again, or nothing becomes ready; `last_words` are what it printed last."""

    def __init__(self, message: str, last_words: Sequence[str] = (), exit_code: int = 1) -> None:
        super().__init__(message)
        self.last_words = last_words
        self.exit_code = exit_code


class StopSignals:
    """Ctrl-C, SIGTERM or a closed terminal: `first` asks for an orderly end, `second` for one at once."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup ignores SIGHUP, and means it.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, self._received)

    def _received(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


class Supervisor:
    """Runs children given in the order in which they start; `ending_order` are groups that end one after another."""

    def __init__(self, children: Sequence[Child], ending_order: Sequence[Sequence[Child]], stop: StopSignals) -> None:
        self._children = children
        self._ending_order = ending_order
        self._signals = stop
        self._keepers: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start every child, without waiting for any."""
        self._keepers = [asyncio.create_task(child.keep_running()) for child in self._children]

    async def wait_until_ready(self, is_ready: Callable[[], Awaitable[bool]]) -> bool:
        """Return True once `is_ready` says so, False when a stop is asked for first; raises StartFailed."""
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                while not self._signals.first.is_set():
                    if await is_ready():
                        return True
                    self._look_for_mistakes()
                    self._look_for_deaths()
                    await asyncio.sleep(READY_POLL_S)
        except TimeoutError:
            raise StartFailed(f"Assay was not ready within {READY_TIMEOUT_S:g} s; the logs may say why") from None
        return False

    async def run_until_stopped(self) -> None:
        """Wait for a stop signal; raises StartFailed when a process says, at a later start, that a setting is wrong."""
        stop = asyncio.create_task(self._signals.first.wait())
        await asyncio.wait({stop, *self._keepers}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        self._look_for_mistakes()

    async def end(self) -> None:
        """End the groups in order; a second signal ends all at once."""
        orderly = asyncio.create_task(self._end_in_order())
        hurried = asyncio.create_task(self._signals.second.wait())
        await asyncio.wait({orderly, hurried}, return_when=asyncio.FIRST_COMPLETED)
        if not orderly.done():
            for child in self._children:
                child.kill()
        hurried.cancel()
        await orderly
        await asyncio.gather(*self._keepers)

    async def _end_in_order(self) -> None:
        for group in self._ending_order:
            await asyncio.gather(*(child.stop() for child in group))

    def _look_for_mistakes(self) -> None:
        for child in self._children:
            if child.mistaken:
                message = f"{child.command.name} does not start with these settings:"
                raise StartFailed(message, child.last_words(), USAGE_EXIT)

    def _look_for_deaths(self) -> None:
        for child in self._children:
            if child.deaths >= DEATHS_BEFORE_GIVING_UP:
                raise StartFailed(f"{child.command.name} does not start; its last words:", child.last_words())
