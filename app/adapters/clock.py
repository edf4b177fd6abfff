"""The real clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Time as the machine tells it."""

    def now(self) -> datetime:
        """The wall clock, UTC and aware."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back; the clock that asyncio's timers run on."""
        return time.monotonic()
