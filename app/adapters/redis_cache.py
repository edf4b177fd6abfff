"""The prompt/response cache in Redis 6.2 or newer, which may be another server than the runs', and may evict.

=========================  ======  ===========================  ============================
key                        type    holds                        lives
=========================  ======  ===========================  ============================
assay:answer:{KEY}         string  a validated reply            cache_ttl
assay:answer-lock:{KEY}    string  token of who asks just now   seconds, renewed by the asker
=========================  ======  ===========================  ============================
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto

import structlog
from redis.asyncio import Redis

from app.adapters.backoff import Backoff
from app.adapters.redis_client import REDIS_ERRORS
from app.adapters.redis_scripts import script
from app.adapters.single_flight import SingleFlight
from app.domain.errors import ContextOverflow, JudgeError, NotConfigured
from app.domain.request import CacheMode
from app.ports import CachedAnswer, Clock, Source, Telemetry

log = structlog.get_logger()

PATIENCE_S = 1.0
# After a failure, how long the cache is left alone; then one caller tries it again.
AWAY_S = 5.0
LOCK_MS = 3_000
RENEW_S = 1.0
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.25
FORGET_BATCH = 500
LOCK_KEEPER = "answer-lock-keeper"

Ask = Callable[[], Awaitable[bytes]]


class _Away(Exception):
    """The cache's Redis does not answer, or did not a moment ago."""


class _Turn(Enum):
    """Whose turn it is to ask: ours, with the lock; or ours, since there is no cache to hold a lock."""

    LOCKED = auto()
    ALONE = auto()


class RedisAnswerCache:
    """AnswerCache; equal questions share one asker per process, and processes share one asker by a lock in Redis.

    Each answer counts one of hit, miss, coalesced, refresh, off and error (asked without the cache); a reply that
    could not be stored counts an error more.
    """

    def __init__(self, client: Redis, *, ttl_s: int, clock: Clock, telemetry: Telemetry) -> None:
        self._client = client
        self._ttl_ms = ttl_s * 1000
        self._clock = clock
        self._telemetry = telemetry
        self._flights: SingleFlight[CachedAnswer] = SingleFlight(_concerns_all)
        self._take = script(client, "answer_take")
        self._renew = script(client, "answer_renew")
        self._put = script(client, "answer_put")
        self._release = script(client, "answer_release")
        self._is_away = False
        self._try_again_at = 0.0

    async def answer(self, key: str, mode: CacheMode, ask: Ask) -> CachedAnswer:
        """Return the reply stored under key, or ask for it once, whoever else (any process) wants it now.

        `ask` returns bytes only when they are worth storing; what it raises is raised here and stored nowhere.
        REFRESH always asks and overwrites. OFF always asks and neither reads nor writes. Those who wait in this process
        share the asker's JudgeError, ContextOverflow or NotConfigured; when it was cancelled or died, one takes over.
        """
        if mode is CacheMode.OFF:
            self._telemetry.cache_used("off")
            return CachedAnswer(await ask(), Source.LLM)
        if mode is CacheMode.REFRESH:
            self._telemetry.cache_used("refresh")
            value = await ask()
            await self._store(key, value, token="")
            return CachedAnswer(value, Source.LLM)
        (value, source), led = await self._flights.fly(key, lambda: self._lead(key, ask))
        if not led:
            source = Source.CACHE if source is Source.CACHE else Source.COALESCED
        if source is not Source.LLM:
            self._telemetry.cache_used("hit" if source is Source.CACHE else "coalesced")
        return CachedAnswer(value, source)

    async def forget(self, keys: list[str]) -> None:
        """Delete these replies (for DELETE of a run), even when the cache seemed away a moment ago."""
        self._try_again_at = 0.0
        for start in range(0, len(keys), FORGET_BATCH):
            names = [_answer_key(key) for key in keys[start : start + FORGET_BATCH]]
            try:
                async with self._reaching():
                    await self._client.unlink(*names)
            except _Away:
                self._telemetry.cache_used("error")
                log.warning("cached_replies_not_forgotten", count=len(keys) - start)
                return

    async def _lead(self, key: str, ask: Ask) -> CachedAnswer:
        token = secrets.token_hex(16)
        try:
            found = await self._found_or_locked(key, token)
            if isinstance(found, CachedAnswer):
                return found
            self._telemetry.cache_used("miss" if found is _Turn.LOCKED else "error")
            async with self._lock_kept(key, token, found):
                value = await ask()
        except BaseException:
            # The lock may be ours even when the wait for it was cancelled; left alone it would end in seconds.
            await self._unlock(key, token)
            raise
        if found is _Turn.LOCKED:
            await self._store(key, value, token)
        return CachedAnswer(value, Source.LLM)

    async def _found_or_locked(self, key: str, token: str) -> CachedAnswer | _Turn:
        """Return the reply as soon as there is one, or that it is this caller's turn to ask.

        Waits as long as another process keeps the lock alive; the caller's own deadline ends it earlier.
        """
        source, backoff = Source.CACHE, Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        try:
            while True:
                async with self._reaching():
                    taken = await self._take(keys=_both_keys(key), args=[token, LOCK_MS])
                if isinstance(taken, bytes):
                    return CachedAnswer(taken, source)
                if taken:
                    return _Turn.LOCKED
                source = Source.COALESCED
                await asyncio.sleep(backoff.pause_s())
        except _Away:
            return _Turn.ALONE

    @asynccontextmanager
    async def _lock_kept(self, key: str, token: str, turn: _Turn) -> AsyncIterator[None]:
        if turn is _Turn.ALONE:
            yield
            return
        keeping = asyncio.create_task(self._keep_lock(key, token), name=LOCK_KEEPER)
        try:
            yield
        finally:
            keeping.cancel()

    async def _keep_lock(self, key: str, token: str) -> None:
        is_ours = True
        while is_ours:
            await asyncio.sleep(RENEW_S)
            with suppress(_Away):
                async with self._reaching():
                    is_ours = bool(await self._renew(keys=[_lock_key(key)], args=[token, LOCK_MS]))

    async def _unlock(self, key: str, token: str) -> None:
        with suppress(_Away):
            async with self._reaching():
                await self._release(keys=[_lock_key(key)], args=[token])

    async def _store(self, key: str, value: bytes, token: str) -> None:
        try:
            async with self._reaching():
                await self._put(keys=_both_keys(key), args=[value, self._ttl_ms, token])
        except _Away:
            self._telemetry.cache_used("error")

    @asynccontextmanager
    async def _reaching(self) -> AsyncIterator[None]:
        """Bound a use of Redis and turn its failures into _Away, at once while it is known to be away."""
        now = self._clock.monotonic()
        if self._is_away:
            if now < self._try_again_at:
                raise _Away
            # One caller finds out whether it is back, and the others need not wait with it.
            self._try_again_at = now + AWAY_S
        try:
            async with asyncio.timeout(PATIENCE_S):
                yield
        except REDIS_ERRORS as error:
            if not self._is_away:
                log.warning("cache_away", error=type(error).__name__)
            self._is_away, self._try_again_at = True, self._clock.monotonic() + AWAY_S
            raise _Away from error
        if self._is_away:
            log.info("cache_back")
        self._is_away = False


def _concerns_all(error: Exception) -> bool:
    """Whether the judge would fail all who ask this very prompt, and not just the one whose time was short."""
    if isinstance(error, JudgeError):
        return not error.own_deadline
    return isinstance(error, ContextOverflow | NotConfigured)


def _answer_key(key: str) -> str:
    return f"assay:answer:{{{key}}}"


def _lock_key(key: str) -> str:
    return f"assay:answer-lock:{{{key}}}"


def _both_keys(key: str) -> list[str]:
    return [_answer_key(key), _lock_key(key)]
