"""Figures of a classifier with their intervals, as pure functions.

A pair is (score, label): label 1 where the score should be high. What is not defined (a precision without a positive
verdict, an area without both labels) is None and never 0.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from math import sqrt
from typing import NamedTuple, TypeVar

Z_95 = 1.959963984540054
RESAMPLES = 1_000
FOLDS = 5

Item = TypeVar("Item")
Pair = tuple[float, int]


class Interval(NamedTuple):
    """Both ends of a 95 % interval."""

    low: float
    high: float


class Counts(NamedTuple):
    """Verdicts by what they should have been."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    @property
    def total(self) -> int:
        """All verdicts."""
        return sum(self)


def counts(verdicts: Sequence[tuple[bool, bool]]) -> Counts:
    """Count (said, meant)."""
    seen = Counter((bool(said), bool(meant)) for said, meant in verdicts)
    return Counts(seen[True, True], seen[True, False], seen[False, True], seen[False, False])


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def accuracy(c: Counts) -> float | None:
    """(TP + TN) / all."""
    return _share(c.true_positive + c.true_negative, c.total)


def precision(c: Counts) -> float | None:
    """TP / (TP + FP)."""
    return _share(c.true_positive, c.true_positive + c.false_positive)


def recall(c: Counts) -> float | None:
    """TP / (TP + FN)."""
    return _share(c.true_positive, c.true_positive + c.false_negative)


def f1(c: Counts) -> float | None:
    """2 TP / (2 TP + FP + FN): the harmonic mean of precision and recall (van Rijsbergen 1979)."""
    return _share(2 * c.true_positive, 2 * c.true_positive + c.false_positive + c.false_negative)


def kappa(c: Counts) -> float | None:
    """(p - e) / (1 - e): agreement p beyond e, that of two who guess with these frequencies (Cohen 1960)."""
    n = c.total
    if not n:
        return None
    said, meant = (c.true_positive + c.false_positive) / n, (c.true_positive + c.false_negative) / n
    by_chance = said * meant + (1 - said) * (1 - meant)
    agreed = (c.true_positive + c.true_negative) / n
    return _share(agreed - by_chance, 1 - by_chance)


def auroc(pairs: Sequence[Pair]) -> float | None:
    """The share of (positive, negative) pairs in which the positive has the higher score, ties half.

    The Mann-Whitney U over the product of both counts is the area under the ROC curve (Hanley and McNeil 1982).
    """
    by_score: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for score, label in pairs:
        by_score[score][label] += 1
    below = wins = 0.0
    for score in sorted(by_score):
        negatives, positives = by_score[score]
        wins += positives * (below + negatives / 2)
        below += negatives
    return _share(wins, below * (len(pairs) - below))


def wilson(successes: int, total: int) -> Interval | None:
    """The score interval of a proportion (Wilson 1927), which holds near 0 and 1 and for few trials."""
    if not total:
        return None
    share, z2 = successes / total, Z_95**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = Z_95 * sqrt(share * (1 - share) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    return Interval(max(centre - half, 0.0), min(centre + half, 1.0))


def bootstrap(
    items: Sequence[Item],
    group: Callable[[Item], Hashable],
    figures: Callable[[Sequence[Item]], Sequence[float | None]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Interval | None]:
    """The percentile interval of every figure (Efron and Tibshirani 1993), items of one group drawn together.

    Resamples in which a figure is not defined say nothing about it; where those are more than half, neither does the
    interval, which is None then, as it is with fewer than two groups.
    """
    by_group: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        by_group[group(item)].append(item)
    groups = list(by_group.values())
    if len(groups) < 2:
        return [None for _ in figures(items)]
    draw = random.Random(seed)
    drawn = [
        figures([item for chosen in draw.choices(groups, k=len(groups)) for item in chosen]) for _ in range(resamples)
    ]
    seen = [[value for value in values if value is not None] for values in zip(*drawn, strict=True)]
    return [_percentiles(values) if len(values) > resamples / 2 else None for values in seen]


def _percentiles(values: list[float]) -> Interval:
    ordered = sorted(values)
    return Interval(quantile(ordered, 0.025), quantile(ordered, 0.975))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share lies, straight lines between neighbours (Hyndman and Fan 1996, type 7)."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def best_threshold(pairs: Sequence[Pair]) -> float:
    """The threshold whose verdicts (score > threshold) are right most often, labels weighted to be equally frequent.

    It lies midway between two scores, so that the direction of equality does not matter; of equal ones the nearest to
    0.5.
    """
    scores = sorted({score for score, _ in pairs})
    edges = [scores[0] - 1e-9, *((low + high) / 2 for low, high in pairwise(scores)), scores[-1] + 1e-9]
    total = Counter(label for _, label in pairs)

    def balanced(threshold: float) -> float:
        right = Counter(label for score, label in pairs if (score > threshold) == bool(label))
        return sum(right[label] / total[label] for label in total) / len(total)

    return max(edges, key=lambda edge: (round(balanced(edge), 12), -abs(edge - 0.5)))


def cross_validated(
    items: Sequence[Item],
    group: Callable[[Item], Hashable],
    pair: Callable[[Item], Pair],
    *,
    folds: int = FOLDS,
    seed: int = 0,
) -> list[tuple[bool, bool]] | None:
    """Verdicts (said, meant) of thresholds chosen without the items they are about; None with fewer groups than folds.

    Groups are dealt to the folds one after the other, sorted by label, so that each fold has both.
    """
    labels: dict[Hashable, tuple[int, ...]] = {}
    for item in items:
        labels[group(item)] = (*labels.get(group(item), ()), pair(item)[1])
    if len(labels) < folds:
        return None
    draw = random.Random(seed)
    order = sorted(labels, key=lambda name: (labels[name], draw.random()))
    fold_of = {name: place % folds for place, name in enumerate(order)}
    verdicts = []
    for fold in range(folds):
        threshold = best_threshold([pair(item) for item in items if fold_of[group(item)] != fold])
        held_out = [pair(item) for item in items if fold_of[group(item)] == fold]
        verdicts += [(score > threshold, bool(label)) for score, label in held_out]
    return verdicts
