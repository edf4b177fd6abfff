"""How often and how patiently a failed call is tried again."""

import random
from dataclasses import dataclass

# A try that has less than this left can't end well.
LAST_TRY_S = 0.1
ENDLESS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with full jitter, in seconds."""

    max_retries: int
    base_s: float = 0.5
    ceiling_s: float = 8.0

    def wait_s(self, retries: int, at_least_s: float, left_s: float) -> float | None:
        """Return how long to wait after `retries` retries, or None when the count or what is left forbids another.

        At least what the provider asked for, plus a random part that doubles its reach with every retry: callers that
        failed together must not come back together.
        """
        room_s = left_s - at_least_s - LAST_TRY_S
        if retries >= self.max_retries or room_s <= 0:
            return None
        reach_s = min(self.ceiling_s, self.base_s * 2 ** min(retries, 16), room_s)
        return at_least_s + random.uniform(0.0, reach_s)  # noqa: S311 - spreads load, protects nothing
