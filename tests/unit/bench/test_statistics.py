"""Every formula against values worked by hand."""

import random
from itertools import product
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.labelled import statistics
from bench.labelled.statistics import Counts, Interval

# 8 of 20 are positive; the judge finds 6 of them and calls 3 of the other 12 positive.
COUNTS = Counts(true_positive=6, false_positive=3, false_negative=2, true_negative=9)


def test_counts_say_before_meant() -> None:
    verdicts = [(True, True), (True, False), (True, False), (False, True), (False, False)]
    assert statistics.counts(verdicts) == Counts(1, 2, 1, 1)


def test_the_figures_of_a_table() -> None:
    assert statistics.accuracy(COUNTS) == pytest.approx(15 / 20)
    assert statistics.precision(COUNTS) == pytest.approx(6 / 9)
    assert statistics.recall(COUNTS) == pytest.approx(6 / 8)
    assert statistics.f1(COUNTS) == pytest.approx(12 / 17)
    # By chance 9/20 x 8/20 + 11/20 x 12/20 = 0.51 agree; (0.75 - 0.51) / 0.49.
    assert statistics.kappa(COUNTS) == pytest.approx(0.24 / 0.49)


def test_kappa_of_cohens_own_kind_of_table() -> None:
    # 50 of 50 answers alike are no more than chance when both always say yes: not defined.
    assert statistics.kappa(Counts(50, 0, 0, 0)) is None
    assert statistics.kappa(Counts(25, 25, 25, 25)) == 0.0
    assert statistics.kappa(Counts(0, 5, 5, 0)) == -1.0


@pytest.mark.parametrize("figure", [statistics.accuracy, statistics.precision, statistics.recall, statistics.f1])
def test_a_share_of_nothing_is_not_defined(figure: object) -> None:
    assert callable(figure)
    assert figure(Counts(0, 0, 0, 0)) is None
    assert statistics.kappa(Counts(0, 0, 0, 0)) is None


def test_precision_without_a_positive_verdict_is_not_defined() -> None:
    assert statistics.precision(Counts(0, 0, 4, 6)) is None
    assert statistics.recall(Counts(0, 0, 4, 6)) == 0.0


def test_auroc_counts_pairs_and_ties_half() -> None:
    # Positives 0.9, 0.5, 0.5; negatives 0.5, 0.1: of six pairs 4 are won and 2 tied.
    pairs = [(0.9, 1), (0.5, 1), (0.5, 1), (0.5, 0), (0.1, 0)]
    assert statistics.auroc(pairs) == pytest.approx(5 / 6)


def test_auroc_of_scores_that_are_all_equal_is_chance() -> None:
    assert statistics.auroc([(0.0, 1), (0.0, 0), (0.0, 0)]) == 0.5


def test_auroc_without_both_labels_is_not_defined() -> None:
    assert statistics.auroc([(0.3, 1), (0.4, 1)]) is None
    assert statistics.auroc([]) is None


SCORED = st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.integers(0, 1)), min_size=1, max_size=12)


@given(SCORED)
def test_auroc_is_what_the_pairs_say(pairs: list[tuple[float, int]]) -> None:
    positives = [score for score, label in pairs if label]
    negatives = [score for score, label in pairs if not label]
    won = [1.0 if high > low else 0.5 if high == low else 0.0 for high, low in product(positives, negatives)]
    expected = sum(won) / len(won) if won else None
    assert statistics.auroc(pairs) == (None if expected is None else pytest.approx(expected))


def test_wilson_of_a_textbook_value() -> None:
    # 10 of 10: the lower end is n / (n + z^2) = 10 / 13.8415, the upper one 1.
    assert statistics.wilson(10, 10) == pytest.approx((10 / 13.841458820694124, 1.0))
    # 0 of 10 mirrors it.
    assert statistics.wilson(0, 10) == pytest.approx((0.0, 1 - 10 / 13.841458820694124))
    # 5 of 10: 0.5 -+ z / (2 sqrt(n + z^2)) = 0.5 -+ 1.95996 / (2 x 3.72041).
    assert statistics.wilson(5, 10) == pytest.approx((0.236593, 0.763407), abs=1e-6)


def test_wilson_of_nothing_is_not_defined() -> None:
    assert statistics.wilson(0, 0) is None


@given(st.integers(0, 60), st.integers(0, 60))
def test_wilson_holds_the_share_and_stays_within_0_and_1(right: int, wrong: int) -> None:
    interval = statistics.wilson(right, right + wrong)
    if interval is None:
        assert right + wrong == 0
    else:
        assert 0.0 <= interval.low <= right / (right + wrong) + 1e-12
        assert right / (right + wrong) - 1e-12 <= interval.high <= 1.0


def test_quantiles_lie_on_straight_lines() -> None:
    assert statistics.quantile([1.0, 2.0, 4.0], 0.5) == 2.0
    assert statistics.quantile([1.0, 2.0, 4.0], 0.75) == 3.0
    assert statistics.quantile([1.0, 2.0, 4.0], 1.0) == 4.0


def mean(values: list[float]) -> list[float | None]:
    return [sum(values) / len(values)]


def test_the_bootstrap_of_a_mean_is_near_its_normal_interval() -> None:
    values = [random.Random(1).gauss(0, 1) for _ in range(1)] + [random.Random(seed).gauss(0, 1) for seed in range(200)]
    centre = sum(values) / len(values)
    spread = (sum((value - centre) ** 2 for value in values) / len(values) ** 2) ** 0.5
    (interval,) = statistics.bootstrap(
        range(len(values)), lambda place: place, lambda drawn: mean([values[i] for i in drawn])
    )
    assert interval is not None
    assert isclose(interval.low, centre - 1.96 * spread, abs_tol=0.2 * spread)
    assert isclose(interval.high, centre + 1.96 * spread, abs_tol=0.2 * spread)


def test_the_bootstrap_draws_groups_whole() -> None:
    sizes = set()

    def seen(drawn: list[tuple[str, int]]) -> list[float | None]:
        sizes.add(tuple(sorted(name for name, _ in drawn)))
        return [0.5]

    statistics.bootstrap([("a", 0), ("a", 1), ("b", 0)], lambda item: item[0], seen, resamples=50)
    assert sizes == {("a", "a", "b"), ("a", "a", "a", "a"), ("b", "b")}


def test_the_bootstrap_of_one_group_or_of_an_undefined_figure_is_none() -> None:
    assert statistics.bootstrap([1, 2], lambda _: "same", lambda _: [1.0, None]) == [None, None]
    assert statistics.bootstrap([1, 2, 3], lambda item: item, lambda _: [1.0, None]) == [Interval(1.0, 1.0), None]


def test_the_best_threshold_lies_between_scores() -> None:
    assert statistics.best_threshold([(0.1, 0), (0.2, 0), (0.3, 1), (0.9, 1)]) == pytest.approx(0.25)


def test_the_best_threshold_weighs_rare_labels_as_much_as_frequent_ones() -> None:
    # Calling all of them 0 is right in 9 of 10; above 0.35 one positive of one is found and two of nine are mistaken.
    pairs = [(0.1, 0)] * 7 + [(0.5, 0)] * 2 + [(0.6, 1)]
    assert statistics.best_threshold(pairs) == pytest.approx(0.55)


def test_among_equal_thresholds_the_one_nearest_to_the_middle_is_taken() -> None:
    assert statistics.best_threshold([(0.4, 0), (0.4, 1), (0.6, 0), (0.6, 1)]) == pytest.approx(0.5)


def pair(item: tuple[str, float, int]) -> tuple[float, int]:
    return item[1], item[2]


def test_cross_validation_judges_each_item_once_by_a_threshold_of_others() -> None:
    items = [(f"row{place}", place / 20, int(place >= 10)) for place in range(20)]
    verdicts = statistics.cross_validated(items, lambda item: item[0], pair)
    assert verdicts is not None
    assert len(verdicts) == 20
    assert sum(said == meant for said, meant in verdicts) >= 18


def test_cross_validation_of_labels_by_chance_gains_nothing() -> None:
    draw = random.Random(3)
    items = [(f"row{place}", draw.random(), place % 2) for place in range(400)]
    verdicts = statistics.cross_validated(items, lambda item: item[0], pair)
    assert verdicts is not None
    assert 0.4 < sum(said == meant for said, meant in verdicts) / 400 < 0.6


def test_cross_validation_needs_a_group_for_every_fold() -> None:
    assert statistics.cross_validated([("a", 0.1, 0), ("b", 0.9, 1)], lambda item: item[0], pair) is None


def test_cross_validation_keeps_pairs_in_one_fold() -> None:
    # In every pair the better one scores 0.6 and the other 0.4; a pair cut apart would still be judged alike, so that
    # the count of verdicts is what tells that none is lost.
    items = [(f"pair{place // 2}", 0.4 + 0.2 * (place % 2), place % 2) for place in range(12)]
    verdicts = statistics.cross_validated(items, lambda item: item[0], pair)
    assert verdicts == [(bool(label), bool(label)) for _, label in verdicts or []]
    assert len(verdicts or []) == 12
