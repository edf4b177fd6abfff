"""Pauses between tries."""

import random

FIRST_S = 0.1
LONGEST_S = 3.0


class Backoff:
    """Seconds to wait before each try: doubling, bounded, spread so that processes do not come back all at once."""

    def __init__(self, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def pause_s(self) -> float:
        """Return how long to wait now."""
        pause = self._next_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
        self._next_s = min(self._next_s * 2, self._longest_s)
        return pause

    def reset(self) -> None:
        """Begin anew, since what was tried worked."""
        self._next_s = self._first_s
