"""Wake-ups over Redis pub/sub: one connection and one channel a process, however many runs are watched."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from redis.asyncio import Redis

from app.adapters.backoff import Backoff
from app.adapters.redis_client import REDIS_ERRORS
from app.adapters.redis_pubsub import listen
from app.adapters.run_keys import CHANNEL, STEP, changed_message
from app.ports import RunKey

log = structlog.get_logger()

START_S = 2.0


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
        self._backoff = Backoff()
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
        while True:
            try:
                await listen(self._client, CHANNEL, self._handle)
            except REDIS_ERRORS as error:
                if self._subscribed.is_set():
                    log.warning("notifier_disconnected", error=type(error).__name__)
                self._subscribed.clear()
            await asyncio.sleep(self._backoff.pause_s())

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
            self._backoff.reset()
            for watches in self._watches.values():
                for watch in watches:
                    watch.wake()
