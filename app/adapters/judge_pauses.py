"""Until when each judge is to be left alone because its provider asked for it, known to all processes.

===========================  ======  ====================  =====================
key                          type    holds                 lives
===========================  ======  ====================  =====================
assay:{judges}:pause:{NAME}  string  1                     as long as the pause
===========================  ======  ====================  =====================

NAME is JudgeSpec.shared_name. Pauses are told over a channel; the keys are for processes that were not listening. Calls
look only at what their process knows.
"""

import asyncio
import math
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import structlog
from redis.asyncio import Redis

from app.adapters.backoff import Backoff
from app.adapters.redis_client import REDIS_ERRORS
from app.adapters.redis_pubsub import listen
from app.adapters.redis_scripts import script
from app.ports import Clock

log = structlog.get_logger()

CHANNEL = "assay:judge-pauses"
# Whoever asks for longer, by mistake or for a day, is asked again now and then: one call each time.
LONGEST_S = 600.0
# Calls that are refused together ask for the same pause; what adds less than this is not told again.
_NEWS_S = 0.05


class JudgePauses:
    """The pauses of a process's judges; without Redis they are this process's alone."""

    def __init__(self, clock: Clock, client: Redis | None = None) -> None:
        self._clock = clock
        self._client = client
        self._until: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._backoff = Backoff()
        if client is not None:
            self._write = script(client, "judge_pause")
            self._read = script(client, "judge_pauses")

    def follow(self, name: str) -> None:
        """Take this judge's pauses over from other processes."""
        self._until.setdefault(name, -math.inf)

    def left_s(self, name: str) -> float:
        """Return how long this judge is to be left alone still."""
        return max(0.0, self._until.get(name, -math.inf) - self._clock.monotonic())

    def pause(self, name: str, seconds: float) -> None:
        """Leave this judge alone for so long, LONGEST_S at most: this process at once, the others when they hear it."""
        seconds = min(seconds, LONGEST_S)
        if seconds < self.left_s(name) + _NEWS_S:
            return
        self._until[name] = self._clock.monotonic() + seconds
        log.info("judge_paused", judge=name, seconds=round(seconds, 3))
        if self._client is not None:
            self._begin(self._tell(name, seconds))

    def start(self) -> None:
        """Begin to follow what other processes tell; ends with `aclose`."""
        if self._client is not None and self._until:
            self._begin(self._follow_others(self._client))

    async def aclose(self) -> None:
        """End every task of this."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, name: str, seconds: float) -> None:
        # Each process that calls finds out by itself: an outage of Redis only costs the others a call.
        with suppress(*REDIS_ERRORS):
            await self._write(keys=[_key(name)], args=[math.ceil(seconds * 1000), CHANNEL, name])

    async def _follow_others(self, client: Redis) -> None:
        while True:
            with suppress(*REDIS_ERRORS):
                await listen(client, CHANNEL, self._hear)
            await asyncio.sleep(self._backoff.pause_s())

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "message":
            name, _, milliseconds = message["data"].partition(b" ")
            if milliseconds.isdigit():
                self._prolong(name.decode(errors="replace"), int(milliseconds))
        elif message["type"] == "subscribe":
            self._backoff.reset()
            # Something may have been told while nobody listened here.
            self._begin(self._catch_up())

    async def _catch_up(self) -> None:
        names = list(self._until)
        with suppress(*REDIS_ERRORS):
            left_ms = await self._read(keys=[_key(name) for name in names])
            for name, milliseconds in zip(names, left_ms, strict=True):
                self._prolong(name, milliseconds)

    def _prolong(self, name: str, milliseconds: int) -> None:
        if name in self._until and milliseconds > 0:
            self._until[name] = max(self._until[name], self._clock.monotonic() + milliseconds / 1000)


def _key(name: str) -> str:
    return f"assay:{{judges}}:pause:{name}"
