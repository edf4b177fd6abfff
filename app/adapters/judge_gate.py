"""What every call of one judge passes: its provider's pauses, its breaker, its places and its limits."""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog

from app.adapters.breaker import PROBING_S, Breaker, Entry, State
from app.adapters.chat_outcome import CallFailed, HeldBack, Outcome
from app.adapters.judge_limits import JudgeLimiter
from app.adapters.judge_pauses import JudgePauses
from app.adapters.judge_spec import JudgeSpec
from app.adapters.lending import lent_when_long
from app.domain.errors import JudgeTimeout
from app.ports import Clock, Completion, Slot, Telemetry

log = structlog.get_logger()

# A lease outlives the longest call by this.
LEASE_MARGIN_S = 10.0
# A pause shorter than this is over when the call arrives.
_BLINK_S = 0.01
# After 429 without a word on how long: at first, and at most.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
# A judge that had less time than this, since a run's deadline was near, is not to blame for a time-out.
FAIR_S = 10.0
# Those who waited together come back at this rate, within a bound.
SPREAD_EACH_S = 0.02
SPREAD_FIRST_S = 0.25
SPREAD_LONGEST_S = 10.0


class Passage:
    """One call on its way; `granted_s` is the time that it has, and `completion` what it brought."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.granted_s = 0.0
        self.completion: Completion | None = None

    @property
    def tokens(self) -> int:
        """What the provider counted, 0 when it counted nothing."""
        return self.completion.input_tokens + self.completion.output_tokens if self.completion else 0


class JudgeGate:
    """Lets calls of one judge through, and learns from each how the judge is."""

    def __init__(
        self,
        spec: JudgeSpec,
        clock: Clock,
        telemetry: Telemetry,
        pauses: JudgePauses,
        limiter: JudgeLimiter | None = None,
    ) -> None:
        self._spec = spec
        self._name = spec.shared_name
        self._clock = clock
        self._telemetry = telemetry
        self._pauses = pauses
        self._limiter = limiter
        self._places = asyncio.Semaphore(spec.max_in_flight)
        self._breaker = Breaker(clock.monotonic, self._breaker_changed)
        self._last_failure = ""
        self._held_back = 0
        self._strikes = 0
        self._struck_at = -math.inf
        pauses.follow(self._name)
        telemetry.breaker_changed(spec.id, State.CLOSED)

    def held_s(self) -> float:
        """Return how long no call will be let through, 0 when one may come."""
        return max(self._paused_s(), self._breaker.wait_s())

    @asynccontextmanager
    async def passed(self, tokens: Callable[[], int], deadline: float, slot: Slot | None) -> AsyncIterator[Passage]:
        """Let one call through that may take so many tokens, and learn from its end.

        Raises HeldBack while the judge is to be left alone; JudgeTimeout or JudgeUnavailable when the deadline leaves
        no time to wait for a place or for room in the limits, meanwhile the slot is lent.
        """
        self._refuse_while_held()
        await self._take_place(deadline, slot)
        try:
            self._refuse_while_held()
            entry = self._breaker.enter()
            try:
                async with self._within_limits(entry, tokens, deadline, slot) as passage:
                    self._held_back = 0
                    yield passage
                self._went_well(passage, entry)
            except CallFailed as failed:
                if not isinstance(failed, HeldBack):
                    self._went_wrong(failed, passage, entry)
                raise
            finally:
                self._breaker.leave(entry)
        finally:
            self._places.release()

    def exhausted(self, seconds: float) -> None:
        """Note that the provider's rate headers say that nothing remains for so long."""
        if seconds > 0:
            self._pauses.pause(self._name, seconds)

    async def _take_place(self, deadline: float, slot: Slot | None) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        started = self._clock.monotonic()
        try:
            with lent_when_long(slot):
                async with asyncio.timeout(deadline - started):
                    await self._places.acquire()
        except TimeoutError:
            raise JudgeTimeout("The run's time was over before the judge model was free", own_deadline=True) from None
        finally:
            self._telemetry.judge_waited(self._spec.id, "in_flight", self._clock.monotonic() - started)

    @asynccontextmanager
    async def _within_limits(
        self, entry: Entry, tokens: Callable[[], int], deadline: float, slot: Slot | None
    ) -> AsyncIterator[Passage]:
        if self._limiter is None:
            yield Passage(self._clock.monotonic())
            return
        with lent_when_long(slot):
            admission = await self._limiter.admit(
                tokens(),
                lease_s=self._spec.timeout_s + LEASE_MARGIN_S,
                deadline=deadline,
                wanted=lambda: self._breaker.stands(entry) and not self._paused_s(),
            )
        if admission is None:
            self._breaker.leave(entry)
            self._refuse_while_held()
            # What held it back is over already.
            raise self._held("paused", "The judge model was to be left alone for a moment", PROBING_S)
        passage = Passage(self._clock.monotonic())
        try:
            yield passage
        finally:
            self._limiter.settle(admission, passage.tokens)

    def _paused_s(self) -> float:
        left_s = self._pauses.left_s(self._name)
        return left_s if left_s > _BLINK_S else 0.0

    def _refuse_while_held(self) -> None:
        paused_s, broken_s = self._paused_s(), self._breaker.wait_s()
        if paused_s > 0 and paused_s >= broken_s:
            detail = f"The judge model's provider asks not to be called for another {paused_s:.1f} s"
            raise self._held("paused", detail, paused_s)
        if broken_s > 0:
            failed = f"{self._last_failure}; after {self._breaker.failures} failures in a row"
            detail = f"{failed} it is left alone for another {broken_s:.1f} s"
            raise self._held("breaker", detail, broken_s)

    def _held(self, cause: str, detail: str, wait_s: float) -> HeldBack:
        self._held_back += 1
        spread_s = SPREAD_FIRST_S
        if wait_s > PROBING_S:
            spread_s = min(SPREAD_LONGEST_S, SPREAD_FIRST_S + SPREAD_EACH_S * self._held_back)
        return HeldBack(cause, detail, wait_s=wait_s, spread_s=spread_s)

    def _went_well(self, passage: Passage, entry: Entry) -> None:
        self._breaker.succeeded(entry)
        if passage.started > self._struck_at:
            self._strikes = 0

    def _went_wrong(self, failed: CallFailed, passage: Passage, entry: Entry) -> None:
        if failed.retry_after_s > 0:
            self._pauses.pause(self._name, failed.retry_after_s)
        elif failed.outcome is Outcome.RATE_LIMITED:
            self._pause_a_little(passage)
        if failed.is_sign_of_life:
            self._breaker.succeeded(entry)
        elif failed.retry and not self._had_too_little_time(failed, passage):
            self._last_failure = failed.detail
            self._breaker.failed(entry)

    def _pause_a_little(self, passage: Passage) -> None:
        """Pause for longer with every 429 to a call that began after the last one."""
        now = self._clock.monotonic()
        if passage.started > self._struck_at:
            self._strikes, self._struck_at = self._strikes + 1, now
        longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._strikes - 1, 16))
        self._pauses.pause(self._name, longest_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load

    def _had_too_little_time(self, failed: CallFailed, passage: Passage) -> bool:
        return failed.outcome is Outcome.TIMEOUT and passage.granted_s < min(self._spec.timeout_s, FAIR_S)

    def _breaker_changed(self, state: State) -> None:
        self._telemetry.breaker_changed(self._spec.id, state)
        report = log.warning if state is State.OPEN else log.info
        report("judge_breaker_changed", model=self._spec.id, state=state, failures=self._breaker.failures)
