"""Whether this process may judge by leases that others are gone."""

import time
from collections.abc import Callable

# A suspended machine may stop the one and set the other forward.
CLOCKS = (time.monotonic, time.time)


class Steadiness:
    """Steady is who has seen Redis for a whole lease, without a gap.

    After an outage every lease has ended, and the living need a moment to renew theirs. The same holds for a process
    that was frozen itself: it does not know what it missed.
    """

    def __init__(self, lease_s: float, max_gap_s: float, clocks: tuple[Callable[[], float], ...] = CLOCKS) -> None:
        self._lease_s = lease_s
        self._max_gap_s = max_gap_s
        self._clocks = clocks
        self._since: tuple[float, ...] | None = None
        self._last: tuple[float, ...] = ()

    def seen(self) -> None:
        """Note that Redis answered."""
        now = self._now()
        if self._since is None or self._is_gap(now):
            self._since = now
        self._last = now

    def lost(self) -> None:
        """Note that Redis did not answer."""
        self._since = None

    @property
    def is_steady(self) -> bool:
        """Whether Redis has been seen for a lease by now."""
        now = self._now()
        return self._since is not None and not self._is_gap(now) and now[0] - self._since[0] >= self._lease_s

    def _is_gap(self, now: tuple[float, ...]) -> bool:
        return any(abs(new - old) > self._max_gap_s for new, old in zip(now, self._last, strict=True))

    def _now(self) -> tuple[float, ...]:
        return tuple(clock() for clock in self._clocks)
