"""Records how jobs ended, in batches as they come, for as long as Redis takes to answer."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from app.adapters.backoff import Backoff
from app.adapters.redis_client import REDIS_ERRORS
from worker.bookkeeping import MAX_BATCH, Bookkeeping, Ending

log = structlog.get_logger()


class Recorder:
    """Takes endings at once and keeps them until they are written: what was paid for is never dropped.

    Whatever ends while a batch is being written makes the next one.
    """

    def __init__(self, bookkeeping: Bookkeeping) -> None:
        self._bookkeeping = bookkeeping
        self._waiting: list[Ending] = []
        self._has_some = asyncio.Event()

    def put(self, ending: Ending) -> None:
        """Have an ending recorded soon."""
        self._waiting.append(ending)
        self._has_some.set()

    async def run(self, on_recorded: Callable[[Sequence[Ending]], None]) -> None:
        """Record what comes, until cancelled; `on_recorded` is told of each written batch."""
        while True:
            await self._has_some.wait()
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            if not self._waiting:
                self._has_some.clear()
            await self._record(batch)
            on_recorded(batch)

    async def _record(self, batch: Sequence[Ending]) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._bookkeeping.end(batch)
            except REDIS_ERRORS as error:
                log.warning("endings_not_recorded", error=type(error).__name__, jobs=len(batch))
                await asyncio.sleep(backoff.pause_s())
            else:
                return
