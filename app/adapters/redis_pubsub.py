"""Listening to a channel of Redis without ever waiting for a connection that is dead."""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

RECONNECT_S = 4.0
SILENCE_S = 15.0


async def listen(client: Redis, channel: str, handle: Callable[[dict[str, Any]], None]) -> NoReturn:
    """Give `handle` what comes on the channel, confirmed subscriptions too, until the connection fails.

    A silent connection is asked for an answer after 15 seconds, since one that is dead looks the same. Raises what
    redis_client.REDIS_ERRORS names.
    """
    pubsub = client.pubsub()
    try:
        async with asyncio.timeout(RECONNECT_S):
            await pubsub.subscribe(channel)
        while True:
            handle(await _next_message(pubsub))
    finally:
        await pubsub.aclose()  # type: ignore[no-untyped-call]


async def _next_message(pubsub: PubSub) -> dict[str, Any]:
    """Return what comes next; raises TimeoutError when the connection is silent even if asked."""
    message: dict[str, Any] | None
    # The client reconnects within these calls, which has no bound of its own.
    async with asyncio.timeout(SILENCE_S + RECONNECT_S):
        message = await pubsub.get_message(timeout=SILENCE_S)
    if message is None:
        async with asyncio.timeout(RECONNECT_S):
            await pubsub.ping()
            message = await pubsub.get_message(timeout=RECONNECT_S)
    if message is None:
        raise TimeoutError
    return message
