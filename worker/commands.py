"""Hears the commands that RQ sends to a worker: stop a job, stop an execution, shut down."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from redis.asyncio import Redis

from worker.backoff import REDIS_ERRORS, Backoff

log = structlog.get_logger()

SILENCE_S = 10.0


class Commands:
    """Gives what comes on a worker's channel to `handle`, which may raise ValueError, KeyError, TypeError for nonsense.

    A silent connection is tried now and then, for one that is dead looks the same.
    """

    def __init__(self, client: Redis, channel: str, handle: Callable[[Mapping[str, Any]], None]) -> None:
        self._client = client
        self._channel = channel
        self._handle = handle

    async def run(self) -> None:
        """Listen until cancelled; commands sent while Redis is away are lost, as RQ sends them."""
        backoff = Backoff()
        while True:
            try:
                await self._listen(backoff)
            except REDIS_ERRORS as error:
                log.warning("commands_unheard", error=type(error).__name__)
                await asyncio.sleep(backoff.pause_s())

    async def _listen(self, backoff: Backoff) -> None:
        async with self._client.pubsub() as pubsub:
            await pubsub.subscribe(self._channel)
            is_tried = False
            while True:
                message = await pubsub.get_message(timeout=SILENCE_S)
                if message is None and is_tried:
                    raise TimeoutError
                if message is None:
                    await pubsub.ping()
                elif message["type"] == "message":
                    self._give(message)
                is_tried = message is None
                backoff.reset()

    def _give(self, message: Mapping[str, Any]) -> None:
        try:
            self._handle(message)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("command_not_understood", error=type(error).__name__)
