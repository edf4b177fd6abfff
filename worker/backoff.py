"""Pauses between tries while Redis is away."""

import random

from redis.exceptions import RedisError

# What says that Redis does not serve us now: cut, silent, loading, out of memory or read-only.
REDIS_ERRORS = (RedisError, OSError, TimeoutError)

FIRST_S = 0.1
LONGEST_S = 3.0


class Backoff:
    """Seconds to wait before each try: doubling, bounded, spread so that workers do not come back all at once."""

    def __init__(self) -> None:
        self._next_s = FIRST_S

    def pause_s(self) -> float:
        """Return how long to wait now."""
        pause = self._next_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
        self._next_s = min(self._next_s * 2, LONGEST_S)
        return pause

    def reset(self) -> None:
        """Begin anew, since Redis answered."""
        self._next_s = FIRST_S
