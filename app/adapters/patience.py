"""How long one call goes on trying."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

from app.adapters.chat_outcome import CallFailed, HeldBack, Outcome
from app.adapters.lending import LEND_AFTER_S
from app.adapters.retries import ENDLESS, LAST_TRY_S, RetryPolicy
from app.domain.errors import AssayError, JudgeError
from app.ports import Clock, Slot, Telemetry

# Those who wait with a connection open, and those who may ask another model, wait no longer for a failing one.
SHORT_S = 8.0


class Waiting(Enum):
    """Who waits: a caller, a queued run (until its deadline), or somebody who has another model to ask."""

    CALLER = auto()
    QUEUED = auto()
    ELSEWHERE = auto()


@dataclass(slots=True)
class Patience:
    """The patience of one call; `retries` counts what it has used up."""

    policy: RetryPolicy
    waiting: Waiting
    deadline: float
    slot: Slot | None
    clock: Clock
    telemetry: Telemetry
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    retries: int = 0

    @property
    def left_s(self) -> float:
        """What is left until the deadline."""
        return self.deadline - self.clock.monotonic()

    async def bear(self, failed: CallFailed, model_id: str, held_s: float) -> None:
        """Wait before the next attempt; raises what the failure becomes when there is none.

        `held_s` is how long no call will be made anyway.
        """
        if not failed.retry:
            raise failed.final() from None
        at_least_s = max(failed.retry_after_s, held_s)
        wait_s = self._wait_s(failed, at_least_s)
        if wait_s is None:
            raise self._final(failed, at_least_s) from None
        if self.waiting is not Waiting.QUEUED or not isinstance(failed, HeldBack):
            self.retries += 1
        if not isinstance(failed, HeldBack):
            self.telemetry.judge_retried(model_id, failed.outcome)
        started = self.clock.monotonic()
        try:
            await self._rest(wait_s)
        finally:
            if isinstance(failed, HeldBack):
                self.telemetry.judge_waited(model_id, failed.cause, self.clock.monotonic() - started)

    def _wait_s(self, failed: CallFailed, at_least_s: float) -> float | None:
        if self.waiting is Waiting.ELSEWHERE and (at_least_s > SHORT_S or _is_worth_leaving(failed)):
            return None
        if self.waiting is Waiting.CALLER and at_least_s > SHORT_S and not _is_asked_for(failed):
            return None
        policy = replace(self.policy, max_retries=ENDLESS) if self.waiting is Waiting.QUEUED else self.policy
        if not isinstance(failed, HeldBack):
            return policy.wait_s(self.retries, at_least_s, self.left_s)
        room_s = self.left_s - at_least_s - LAST_TRY_S
        if self.retries >= policy.max_retries or room_s <= 0:
            return None
        return at_least_s + random.uniform(0.0, min(failed.spread_s, room_s))  # noqa: S311 - spreads load

    async def _rest(self, wait_s: float) -> None:
        if self.slot is None or wait_s < LEND_AFTER_S:
            await self.pause(wait_s)
            return
        with self.slot.lent():
            await self.pause(wait_s)

    def _final(self, failed: CallFailed, at_least_s: float) -> AssayError:
        spent = self.waiting is not Waiting.QUEUED and self.retries >= self.policy.max_retries
        error = failed.final(self._why_no_more(failed, at_least_s, spent))
        if isinstance(error, JudgeError):
            error.own_deadline = self.left_s <= 0 or (not spent and at_least_s + LAST_TRY_S >= self.left_s)
        return error

    def _why_no_more(self, failed: CallFailed, at_least_s: float, spent: bool) -> str:
        if spent:
            return f"; {self.retries} retries did not help" if self.retries else ""
        if at_least_s + LAST_TRY_S < self.left_s:
            is_told = isinstance(failed, HeldBack) or at_least_s <= SHORT_S
            return "" if is_told else f"; it is left alone for another {at_least_s:.1f} s"
        if failed.retry_after_s > 0:
            return f"; it asks to wait {at_least_s:.0f} s, longer than this run's deadline leaves"
        return "; this run's deadline leaves no time for another try"


def _is_worth_leaving(failed: CallFailed) -> bool:
    """Whether another model is the better try at once: this one took all of its time, or is known to be away."""
    return failed.cause == "breaker" if isinstance(failed, HeldBack) else failed.outcome is Outcome.TIMEOUT


def _is_asked_for(failed: CallFailed) -> bool:
    """Whether the provider itself said how long to wait."""
    return failed.cause == "paused" if isinstance(failed, HeldBack) else failed.retry_after_s > 0
