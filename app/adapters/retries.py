"""How often and how patiently a failed call is tried again."""

import random
from dataclasses import dataclass


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
        if retries >= self.max_retries:
            return None
        reach_s = min(self.ceiling_s, self.base_s * 2**retries)
        wait_s = at_least_s + random.uniform(0.0, reach_s)  # noqa: S311 - spreads load, protects nothing
        return wait_s if wait_s < left_s else None
