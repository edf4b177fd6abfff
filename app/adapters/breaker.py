"""When a judge that fails is left alone, and when it is tried again. Pure: time comes from outside."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

FAILURES = 5
FIRST_S = 1.0
LONGEST_S = 30.0
# How soon to look again while the one call that finds out is under way.
PROBING_S = 0.25


class State(StrEnum):
    """Whether calls are made: all of them, none, or one that finds out."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Entry:
    """A call that was let through, `era` openings and closings after the start."""

    era: int
    probe: bool


class Breaker:
    """Opens after FAILURES failed calls in a row, for FIRST_S; then one call at a time finds out.

    Its success closes the breaker, its failure opens it for twice as long, at most LONGEST_S. Calls that began before
    the breaker last opened or closed say nothing by failing; a success is a sign of life whenever it comes.
    """

    def __init__(self, monotonic: Callable[[], float], changed: Callable[[State], None]) -> None:
        self._monotonic = monotonic
        self._changed = changed
        self._state = State.CLOSED
        self._era = 0
        self._openings = 0
        self._open_until = 0.0
        self._probing = False
        self.failures = 0

    @property
    def state(self) -> State:
        """The state as it was last told; an open breaker half opens when the next call enters."""
        return self._state

    def wait_s(self) -> float:
        """Return how long to make no call, 0 when one may enter now."""
        if self._state is State.CLOSED:
            return 0.0
        if self._probing:
            return PROBING_S
        return max(0.0, self._open_until - self._monotonic())

    def enter(self) -> Entry:
        """Let a call through that need not wait; exactly one of the methods below is due when it is over."""
        if self._state is State.CLOSED:
            return Entry(self._era, probe=False)
        self._probing = True
        self._become(State.HALF_OPEN)
        return Entry(self._era, probe=True)

    def stands(self, entry: Entry) -> bool:
        """Return whether a call that was let through and has not begun may still be made."""
        return entry.era == self._era

    def succeeded(self, entry: Entry) -> None:
        """Note an answer: the judge lives."""
        self.leave(entry)
        self.failures = self._openings = 0
        if self._state is not State.CLOSED:
            self._era += 1
            self._probing = False
            self._become(State.CLOSED)

    def failed(self, entry: Entry) -> None:
        """Note that no usable answer came, for which the judge's side is to blame."""
        if entry.era != self._era:
            return
        self.failures += 1
        if entry.probe or self.failures >= FAILURES:
            self._open()

    def leave(self, entry: Entry) -> None:
        """Note that the call ended without telling anything; another may find out."""
        if entry.probe and entry.era == self._era:
            self._probing = False

    def _open(self) -> None:
        longest_s = min(LONGEST_S, FIRST_S * 2 ** min(self._openings, 16))
        self._open_until = self._monotonic() + longest_s * random.uniform(0.75, 1.0)  # noqa: S311 - spreads load
        self._openings += 1
        self._era += 1
        self._probing = False
        self._become(State.OPEN)

    def _become(self, state: State) -> None:
        if state is not self._state:
            self._state = state
            self._changed(state)
