import pytest

from bench.labelled.measures import Figure, measure, said
from tests.unit.bench.records import record


def test_a_score_at_the_threshold_passes_in_both_directions() -> None:
    assert not said(record(score=0.5), 0.5)
    assert said(record(score=0.51), 0.5)
    assert said(record(score=0.5, higher_is_better=True), 0.5)
    assert not said(record(score=0.49, higher_is_better=True), 0.5)


def test_a_group_worked_by_hand() -> None:
    group = [
        record("a", 1.0, 1),
        record("b", 0.6, 1),
        record("c", 0.2, 1),
        record("d", 0.8, 0),
        record("e", 0.0, 0),
        record("f", None, 0),
        record("g", None, 1, status="not_scorable", error=None),
    ]
    measured = measure(group, 0.5)
    assert (measured.asked, measured.judged, measured.positives) == (7, 5, 4)
    values = {name: figure.value for name, figure in measured.figures.items()}
    # Of five: a and b found, c missed, d mistaken, e left alone. Agreement by chance 3/5 x 3/5 + 2/5 x 2/5 = 0.52.
    assert values == {
        "accuracy": pytest.approx(0.6),
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
        "kappa": pytest.approx(0.08 / 0.48),
        "auroc": pytest.approx(4 / 6),
    }
    assert measured.coverage.value == pytest.approx(5 / 7)
    assert measured.worst_case.value == pytest.approx(3 / 7)
    assert measured.failures == {"failed: judge_refused": 1, "not_scorable": 1}
    assert measured.cost.judge_calls == 1.0


def test_rows_that_were_not_judged_are_neither_right_nor_wrong() -> None:
    measured = measure([record("a", None, 1), record("b", None, 0)], 0.5)
    assert measured.figures["accuracy"] == Figure(None, None)
    assert measured.worst_case.value == 0.0
    assert measured.tuned == Figure(None, None)


def test_pairs_count_where_both_are_judged() -> None:
    group = [
        record("a1", 0.9, 1, group="a"),
        record("a0", 0.1, 0, group="a"),
        record("b1", 0.3, 1, group="b"),
        record("b0", 0.3, 0, group="b"),
        record("c1", 0.3, 1, group="c"),
        record("c0", None, 0, group="c"),
        record("single", 0.9, 1),
    ]
    assert measure(group, 0.5).pairs.value == pytest.approx(0.75)


def test_a_constant_judge_can_not_win() -> None:
    measured = measure([record(f"r{n}", 0.0, n % 2) for n in range(40)], 0.5)
    assert measured.figures["accuracy"].value == 0.5
    assert measured.figures["kappa"].value == 0.0
    assert measured.figures["auroc"].value == 0.5
    assert measured.figures["precision"].value is None
    assert measured.tuned.value == 0.5


def test_a_judge_that_says_the_opposite_is_below_chance() -> None:
    measured = measure([record(f"r{n}", float(1 - n % 2), n % 2) for n in range(40)], 0.5)
    assert measured.figures["accuracy"].value == 0.0
    assert measured.figures["kappa"].value == -1.0
    assert measured.figures["auroc"].value == 0.0
