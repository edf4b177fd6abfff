"""How sure a score is: where it would lie if its units were judged again."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from app.judge.verdict import Verdict

LEVEL = 0.95
_MOST_DRAWS, _LEAST_DRAWS = 1_000, 100
_MOST_DRAWN = 400_000  # verdicts drawn in all: a fraction of a second's work


class Chance(NamedTuple):
    """A verdict that a unit may get, None for no verdict, and how likely it is."""

    verdict: Verdict | None
    probability: float


Prospects = Sequence[Chance]
"""What may become of one unit; the probabilities add up to 1, save for rounding."""


def score_interval(
    units: Sequence[Prospects], value_of: Callable[[Sequence[Verdict]], float | None], value: float
) -> tuple[float, float]:
    """Return the 2.5th and the 97.5th percentile of a formula's 0..1 values over units judged anew.

    Every unit's verdict is drawn by its probabilities and without regard to the others' (the percentile interval of a
    parametric bootstrap: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 13). The draws
    are the same for the same units. The interval is widened to hold `value`, the score as it was judged. Takes at most
    a second for tens of thousands of units.
    """
    draws = min(_MOST_DRAWS, max(_LEAST_DRAWS, _MOST_DRAWN // len(units)))
    random = Random(0)  # noqa: S311 - the same draws every time
    columns = [random.choices(range(len(unit)), [chance.probability for chance in unit], k=draws) for unit in units]
    values = [value]
    for drawn, times in Counter(zip(*columns, strict=True)).items():
        verdicts = [unit[index].verdict for unit, index in zip(units, drawn, strict=True)]
        outcome = value_of([verdict for verdict in verdicts if verdict is not None])
        values += [] if outcome is None else [outcome] * times
    values.sort()
    tail = int(len(values) * (1 - LEVEL) / 2)
    return min(values[tail], value), max(values[-1 - tail], value)
