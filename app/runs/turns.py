"""A few at a time: a burst of one kind of request leaves the event loop to the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

AT_ONCE = 8
PATIENCE_S = 1.0


class Turns:
    """Lets `at_once` in together and the others wait, first come, first served.

    Each that is in makes every turn of the loop, and so every other request, a little longer. Whoever waited for
    `patience_s` seconds goes in all the same: those that are in may be waiting for a server that is silent.
    """

    def __init__(self, at_once: int = AT_ONCE, patience_s: float = PATIENCE_S) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._patience_s = patience_s

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it for the block."""
        try:
            async with asyncio.timeout(self._patience_s):
                await self._free.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._free.release()
