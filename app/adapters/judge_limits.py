"""The limits of one judge, kept by all processes together.

=============================  ======  ===================================================  ======================
key                            type    holds                                                lives
=============================  ======  ===================================================  ======================
assay:{judges}:window:{NAME}   hash    requests and tokens admitted, by second              a minute and a little
assay:{judges}:leases:{NAME}   zset    calls under way by when their lease ends             as long as a lease
=============================  ======  ===================================================  ======================

NAME is JudgeSpec.shared_name. A process that is killed frees its places when their leases end.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from redis.asyncio import Redis

from app.adapters.backoff import Backoff
from app.adapters.judge_spec import Limits
from app.adapters.redis_client import REDIS_ERRORS
from app.adapters.redis_scripts import script
from app.domain.errors import JudgeUnavailable
from app.ports import Clock

log = structlog.get_logger()

WINDOW_S = 60
# Full seconds between two admissions that need not share the limit, beyond the window: a call may be late on its way.
MARGIN_S = 1
SHORTEST_WAIT_S = 0.02
FIRST_LOOK_S = 0.02
LONGEST_LOOK_S = 0.25
# Before the run's deadline, so that the run ends with what it waited for.
GIVE_UP_S = 0.1
LOOK_UP_S = 1.0
CLOSING_S = 1.0
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Admission:
    """A call's place within the limits; `tokens` is what was set aside for it, in this second of the server's time."""

    lease: str
    tokens: int
    second: int


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Which limit leaves no room, and until when; None: until some call ends."""

    limit: str
    wait_s: float | None


class JudgeLimiter:
    """Admits calls of one judge as its limits allow, in the order of their coming within this process.

    Any `window_s` seconds see at most the limits. Only the first in line asks Redis: those who wait cost nothing.
    `now_ms` stands in for the server's clock.
    """

    def __init__(
        self,
        client: Redis,
        name: str,
        limits: Limits,
        clock: Clock,
        waited: Callable[[str, float], None],
        *,
        window_s: int = WINDOW_S,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._waited = waited
        self._kept_s = window_s + MARGIN_S
        self._now_ms = now_ms
        self._keys = [f"assay:{{judges}}:{kind}:{name}" for kind in ("window", "leases")]
        self._admit = script(client, "limit_admit")
        self._settle = script(client, "limit_settle")
        self._line = asyncio.Lock()
        self._settled_one = asyncio.Event()
        self._refused_by = ""
        self._refusals = 0
        self._away = False
        self._settling: set[asyncio.Task[None]] = set()

    async def admit(
        self, tokens: int, *, lease_s: float, deadline: float, wanted: Callable[[], bool]
    ) -> Admission | None:
        """Wait until a call of so many tokens is within the limits; None when it is no longer wanted meanwhile.

        The place in flight is kept for lease_s unless it is settled earlier. Raises JudgeUnavailable just before the
        deadline.
        """
        started, refusals = self._clock.monotonic(), self._refusals
        try:
            async with asyncio.timeout(deadline - GIVE_UP_S - started), self._line:
                return await self._first_in_line(tokens, lease_s, wanted)
        except TimeoutError:
            raise JudgeUnavailable(self._why_not(), own_deadline=True) from None
        finally:
            if self._refusals > refusals:
                self._waited(self._refused_by, self._clock.monotonic() - started)

    def settle(self, admission: Admission, tokens_used: int) -> None:
        """Free the call's place and count the tokens it used instead of those set aside; 0: they are not known."""
        correction = tokens_used - admission.tokens if tokens_used else 0
        task = asyncio.get_running_loop().create_task(self._settled(admission, correction))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def aclose(self) -> None:
        """Wait a moment for places that are being freed."""
        if self._settling:
            await asyncio.wait(self._settling, timeout=CLOSING_S)

    async def _first_in_line(self, tokens: int, lease_s: float, wanted: Callable[[], bool]) -> Admission | None:
        lease, looks, outage = secrets.token_hex(8), Backoff(FIRST_LOOK_S, LONGEST_LOOK_S), Backoff()
        may_be_admitted = False
        try:
            while wanted():
                self._settled_one.clear()
                may_be_admitted = True
                try:
                    answer = await self._ask(lease, tokens, lease_s)
                except REDIS_ERRORS as error:
                    self._is_away(error)
                    await asyncio.sleep(outage.pause_s())
                    continue
                may_be_admitted = self._away = False
                if isinstance(answer, Admission):
                    return answer
                self._refused_by, self._refusals = answer.limit, self._refusals + 1
                await self._until_it_may_fit(answer, looks, wanted)
            return None
        finally:
            if may_be_admitted:
                # Its answer was lost, or not waited for.
                self.settle(Admission(lease, tokens, 0), 0)

    async def _until_it_may_fit(self, refusal: _Refusal, looks: Backoff, wanted: Callable[[], bool]) -> None:
        if refusal.wait_s is None:
            await self._until_settled(looks.pause_s())
        elif refusal.limit == "tokens":
            # A call that ends frees what it did not use.
            await self._until_settled(min(refusal.wait_s, LOOK_UP_S))
        else:
            await self._until_window_moves(refusal.wait_s, wanted)

    async def _ask(self, lease: str, tokens: int, lease_s: float) -> Admission | _Refusal:
        limits = (self._limits.requests_per_minute, self._limits.tokens_per_minute, self._limits.in_flight)
        now_ms = self._now_ms() if self._now_ms else ""
        arguments = [lease, int(lease_s * 1000), self._kept_s, *(limit or 0 for limit in limits), tokens, now_ms]
        wait_ms, limit, *second = await self._admit(keys=self._keys, args=arguments)
        if second:
            return Admission(lease, tokens, second[0])
        return _Refusal(limit.decode(), None if wait_ms == _UNKNOWN else wait_ms / 1000)

    async def _until_settled(self, longest_s: float) -> None:
        """Wait until a call of this process has ended, or so long, as others' calls end unseen."""
        try:
            async with asyncio.timeout(longest_s):
                await self._settled_one.wait()
        except TimeoutError:
            return

    async def _until_window_moves(self, seconds: float, wanted: Callable[[], bool]) -> None:
        """Wait so long, but no longer than the call is wanted."""
        until = self._clock.monotonic() + max(seconds, SHORTEST_WAIT_S)
        while wanted() and (left_s := until - self._clock.monotonic()) > 0:  # noqa: ASYNC110 - many things end a want
            await asyncio.sleep(min(left_s, LOOK_UP_S))

    async def _settled(self, admission: Admission, correction: int) -> None:
        try:
            await self._settle(keys=self._keys, args=[admission.lease, admission.second, correction])
        except REDIS_ERRORS as error:
            self._is_away(error)
        self._settled_one.set()

    def _is_away(self, error: BaseException) -> None:
        if not self._away:
            log.warning("judge_limits_away", error=type(error).__name__)
        self._away = True

    def _why_not(self) -> str:
        if self._away:
            return "Redis, which keeps the judge model's limits, did not answer before this run's deadline"
        limit = {"requests": "requests a minute", "tokens": "tokens a minute", "in_flight": "calls at once"}
        kind = limit.get(self._refused_by, "calls")
        return f"The judge model's limit of {kind} left no room before this run's deadline; allow more time"
