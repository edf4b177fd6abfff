"""Hears the commands that RQ sends to a worker: stop a job, stop an execution, shut down."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from redis.asyncio import Redis

from app.adapters.backoff import Backoff
from app.adapters.redis_client import REDIS_ERRORS
from app.adapters.redis_pubsub import listen

log = structlog.get_logger()


class Commands:
    """Gives what comes on a worker's channel to `handle`; ValueError, KeyError and TypeError of it mean nonsense."""

    def __init__(self, client: Redis, channel: str, handle: Callable[[Mapping[str, Any]], None]) -> None:
        self._client = client
        self._channel = channel
        self._handle = handle
        self._backoff = Backoff()

    async def run(self) -> None:
        """Listen until cancelled; commands sent while Redis is away are lost, as RQ sends them."""
        while True:
            try:
                await listen(self._client, self._channel, self._give)
            except REDIS_ERRORS as error:
                log.warning("commands_unheard", error=type(error).__name__)
            await asyncio.sleep(self._backoff.pause_s())

    def _give(self, message: Mapping[str, Any]) -> None:
        self._backoff.reset()
        if message["type"] != "message":
            return
        try:
            self._handle(message)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("command_not_understood", error=type(error).__name__)
