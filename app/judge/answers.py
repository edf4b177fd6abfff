"""Validated answers by what was asked: from the cache, from another caller's call in flight, or from the judge."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, TypeVar

from app.domain.errors import Internal, JudgeTimeout
from app.domain.request import CacheMode
from app.ports import AnswerCache, Clock, Prompt, Source

PRIVATE_PREFIX = "run:"
"""Begins the keys that only one run may use: by them a run that is handed over goes on where it was."""

Answer = TypeVar("Answer")
Ask = Callable[[], Awaitable[bytes]]


class _Route(NamedTuple):
    key: str
    mode: CacheMode
    ask: Ask


@dataclass(frozen=True, slots=True)
class Answers:
    """One run's way to answers.

    `about` is what a key depends on beside the prompt: tenant, judge, scorer and its version, options. `run_id` owns
    what no other run may use; where the runs of one request ask the same, it is their request's. `kept` is False when
    nothing may be stored. `used_keys` collects the keys under which something may have been stored.
    """

    cache: AnswerCache
    clock: Clock
    deadline: float
    about: tuple[str, ...]
    run_id: str
    mode: CacheMode
    kept: bool
    used_keys: list[str]

    async def get(self, prompt: Prompt, ask: Ask, read: Callable[[bytes], Answer | None]) -> tuple[Answer, Source]:
        """Return the answer to prompt and where it came from.

        `ask` puts the question to the judge. `read` checks what was stored; where it finds no answer (None), the judge
        is asked after all. Raises what ask raises, and JudgeTimeout at the deadline.
        """
        route = self._route(prompt, ask)
        try:
            async with asyncio.timeout(self.deadline - self.clock.monotonic()) as time_left:
                for mode in (route.mode, CacheMode.REFRESH if self.kept else CacheMode.OFF):
                    stored = await self.cache.answer(route.key, mode, route.ask)
                    answer = read(stored.value)
                    if answer is not None:
                        return answer, stored.source
        except TimeoutError:
            if time_left.expired():
                raise JudgeTimeout("The run's deadline passed before the judge answered; allow more time") from None
            raise
        raise Internal("A fresh answer failed its own check")

    def _route(self, prompt: Prompt, ask: Ask) -> _Route:
        shared = self._key(prompt)
        if not self.kept:
            return _Route(shared, CacheMode.OFF, ask)
        if self.mode is CacheMode.USE:
            self.used_keys.append(shared)
            return _Route(shared, CacheMode.USE, ask)

        private = PRIVATE_PREFIX + self._key(prompt, self.run_id)
        self.used_keys.append(private)
        if self.mode is CacheMode.OFF:
            return _Route(private, CacheMode.USE, ask)

        async def replace_shared() -> bytes:
            return (await self.cache.answer(shared, CacheMode.REFRESH, ask)).value

        self.used_keys.append(shared)
        return _Route(private, CacheMode.USE, replace_shared)

    def _key(self, prompt: Prompt, *own: str) -> str:
        asked = [*self.about, prompt.name, prompt.system, prompt.user, prompt.schema, *own]
        return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
