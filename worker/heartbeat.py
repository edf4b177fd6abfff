"""Keeps the worker's leases alive, and picks up the jobs of workers whose leases ended."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from app.adapters.redis_client import REDIS_ERRORS
from app.runs.steadiness import Steadiness
from worker.bookkeeping import LEASE_S, Bookkeeping, Taken

log = structlog.get_logger()

BEAT_S = LEASE_S / 3
# Soon after Redis is back, leases that ran out while it was away must be renewed before others take the jobs.
RETRY_S = 1.0


class Heartbeat:
    """Beats every 5 seconds, so that a lease of 15 bears two beats that fail.

    Leases of the dead are looked for at every beat too, but only while this worker itself has been beating for a whole
    lease without a gap (see Steadiness). `on_recovered` is told how many jobs were put back.
    """

    def __init__(
        self,
        bookkeeping: Bookkeeping,
        identity: Callable[[], Mapping[str, Any]],
        running: Callable[[], Iterable[Taken]],
        on_beat: Callable[[], None] = lambda: None,
        on_recovered: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._bookkeeping = bookkeeping
        self._identity = identity
        self._running = running
        self._on_beat = on_beat
        self._on_recovered = on_recovered
        self._steadiness = Steadiness(LEASE_S, max_gap_s=2 * BEAT_S)

    async def run(self) -> None:
        """Beat at once and then until cancelled."""
        while True:
            try:
                await self._beat()
            except REDIS_ERRORS as error:
                self._steadiness.lost()
                log.warning("heartbeat_failed", error=type(error).__name__)
                await asyncio.sleep(RETRY_S)
            else:
                await asyncio.sleep(BEAT_S)

    async def _beat(self) -> None:
        await self._bookkeeping.beat(self._identity(), self._running())
        self._on_beat()
        self._steadiness.seen()
        if not self._steadiness.is_steady:
            return
        recovered = await self._bookkeeping.recover()
        if any(recovered):
            self._on_recovered(recovered.put_back)
            log.warning("jobs_recovered", put_back=recovered.put_back, failed=recovered.failed)
