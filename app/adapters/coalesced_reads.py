"""Reads of one tick of the event loop, sent as one MGET: a read alone costs several times its share of a batch."""

import asyncio
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError


class CoalescedReads:
    """GET for many callers at once."""

    def __init__(self, client: Redis, patience_s: float) -> None:
        self._client = client
        self._patience_s = patience_s
        self._waiting: list[tuple[str, asyncio.Future[bytes | None]]] = []
        self._reading: set[asyncio.Task[None]] = set()

    async def get(self, key: str) -> bytes | None:
        """Return the value or None; raises RedisError, OSError or TimeoutError."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._send)
        value: asyncio.Future[bytes | None] = loop.create_future()
        self._waiting.append((key, value))
        return await value

    def _send(self) -> None:
        batch, self._waiting = self._waiting, []
        # The loop itself keeps only weak references to tasks.
        task = asyncio.create_task(self._read(batch))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, batch: list[tuple[str, asyncio.Future[bytes | None]]]) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                values: list[Any] = await self._client.mget([key for key, _ in batch])
        except (RedisError, OSError, TimeoutError) as error:
            for _, value in batch:
                if not value.done():
                    value.set_exception(error)
            return
        for (_, value), found in zip(batch, values, strict=True):
            if not value.done():
                value.set_result(found)
