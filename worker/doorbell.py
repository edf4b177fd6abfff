"""Tells when a queue has a job, without taking it."""

import asyncio
from collections.abc import Callable, Sequence

from redis.asyncio import Redis

from app.adapters.backoff import Backoff
from app.adapters.redis_client import REDIS_ERRORS

BLOCK_S = 5


class Doorbell:
    """Waits on every queue at once and calls `ring` when one of them has a job.

    Moving a list's head to its own head changes nothing, but blocks while the list is empty: unlike BLPOP, a worker
    that dies here takes no job along. `client` must bear answers that take BLOCK_S.
    """

    def __init__(self, client: Redis, queue_keys: Sequence[str], ring: Callable[[], None]) -> None:
        self._client = client
        self._queue_keys = queue_keys
        self._ring = ring
        self._is_armed = asyncio.Event()

    def arm(self) -> None:
        """Ask for one ring, now if a queue has a job already."""
        self._is_armed.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as watches:
            for key in self._queue_keys:
                watches.create_task(self._watch(key))

    async def _watch(self, key: str) -> None:
        backoff = Backoff()
        while True:
            await self._is_armed.wait()
            try:
                head = await self._client.blmove(key, key, BLOCK_S, "LEFT", "LEFT")
            except REDIS_ERRORS:
                # The worker itself finds out and tells; here it is enough to wait until Redis is back.
                await asyncio.sleep(backoff.pause_s())
                continue
            backoff.reset()
            if head is not None:
                self._is_armed.clear()
                self._ring()
