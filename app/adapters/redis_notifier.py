"""Wake-ups over Redis pub/sub: one connection and one channel a process, however many runs are watched."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from app.adapters.run_keys import CHANNEL, STEP, changed_message
from app.ports import RunKey

log = structlog.get_logger()

START_S = 2.0
RECONNECT_S = 4.0
SILENCE_S = 15.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0


class RunWatch:
    """One listener's interest in one run, its `steps` too or not."""

    def __init__(self, *, steps: bool) -> None:
        self.steps = steps
        self._woken = asyncio.Event()

    async def changed(self, timeout_s: float) -> bool:
        """Wait for the next change; False when the time is over first."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    def wake(self) -> None:
        """End the wait that is on, or else the next one."""
        self._woken.set()


class RedisNotifier:
    """Notifier that listens to what the run store publishes; owns its client.

    While Redis is away nobody is woken; when it is back everybody is, since changes may have been missed.
    """

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._watches: defaultdict[bytes, set[RunWatch]] = defaultdict(set)
        self._subscribed = asyncio.Event()
        self._listener: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to listen; returns when subscribed, or after two seconds when Redis does not answer yet."""
        self._listener = asyncio.create_task(self._listen_forever(), name="run-notifier")
        with suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                await self._subscribed.wait()

    async def aclose(self) -> None:
        """Stop listening and close the client."""
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait({self._listener})
        await self._client.aclose()

    @asynccontextmanager
    async def watch(self, key: RunKey, *, steps: bool = False) -> AsyncIterator[RunWatch]:
        """Register interest in a run's status, or in its steps too; enter before reading the store."""
        message, watch = changed_message(key), RunWatch(steps=steps)
        self._watches[message].add(watch)
        try:
            yield watch
        finally:
            others = self._watches[message]
            others.discard(watch)
            if not others:
                del self._watches[message]

    async def _listen_forever(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                await self._listen()
            except (RedisError, OSError, TimeoutError) as error:
                was_subscribed = self._subscribed.is_set()
                self._subscribed.clear()
                if was_subscribed:
                    log.warning("notifier_disconnected", error=type(error).__name__)
                    pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _listen(self) -> None:
        """Wake watchers until the connection fails."""
        pubsub = self._client.pubsub()
        try:
            async with asyncio.timeout(RECONNECT_S):
                await pubsub.subscribe(CHANNEL)
            while True:
                self._handle(await _next_message(pubsub))
        finally:
            await pubsub.aclose()  # type: ignore[no-untyped-call]

    def _handle(self, message: dict[str, Any]) -> None:
        if message["type"] == "message":
            changed: bytes = message["data"]
            is_step = changed.endswith(STEP)
            for watch in self._watches.get(changed.removesuffix(STEP), ()):
                if watch.steps or not is_step:
                    watch.wake()
        elif message["type"] == "subscribe":
            # The client subscribes again by itself when it had to reconnect, so this may be the second time.
            self._subscribed.set()
            for watches in self._watches.values():
                for watch in watches:
                    watch.wake()


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
