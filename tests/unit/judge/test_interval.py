from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.judge.interval import Chance, Prospects, score_interval
from app.judge.segment import Segment
from app.judge.verdict import Verdict

UNIT = Segment(0, 5, "Words")
YES, NO = Verdict(UNIT, {"verdict": "yes"}, None), Verdict(UNIT, {"verdict": "no"}, None)


def unit(likely: float) -> Prospects:
    return [Chance(YES, likely), Chance(NO, 1 - likely)]


def share(verdicts: Sequence[Verdict]) -> float | None:
    return sum(verdict is YES for verdict in verdicts) / len(verdicts) if verdicts else None


def test_two_open_questions() -> None:
    # Worked by hand: no, one and two times yes have the probabilities 1/4, 1/2 and 1/4.
    assert score_interval([unit(0.5), unit(0.5)], share, 0.5) == (0.0, 1.0)


def test_tails_of_a_fortieth_are_left_out() -> None:
    # Worked by hand: yes with 1/100 lies within the upper tail of 2.5 %, with 1/10 it does not.
    assert score_interval([unit(0.01)], share, 0.0) == (0.0, 0.0)
    assert score_interval([unit(0.1)], share, 0.0) == (0.0, 1.0)
    # Two of four with 1/2 each: none and all four have 1/16, more than a tail; one of twelve has less.
    assert score_interval([unit(0.5)] * 4, share, 0.5) == (0.0, 1.0)
    # Binomial (12, 1/2): up to two have 79/4096 = 1.9 %, up to three 7.3 %.
    assert score_interval([unit(0.5)] * 12, share, 0.5) == (3 / 12, 9 / 12)


def test_what_is_certain_has_no_width() -> None:
    assert score_interval([unit(1.0), unit(0.0)], share, 0.5) == (0.5, 0.5)


def test_the_score_lies_within() -> None:
    assert score_interval([unit(1.0)], share, 0.25) == (0.25, 1.0)
    assert score_interval([unit(0.0)], share, 0.25) == (0.0, 0.25)


def test_draws_without_a_score_do_not_count() -> None:
    none_or_yes = [Chance(None, 0.9), Chance(YES, 0.1)]
    assert score_interval([none_or_yes], share, 1.0) == (1.0, 1.0)
    assert score_interval([[Chance(None, 1.0)]], share, 0.5) == (0.5, 0.5)


def test_many_units_take_few_draws() -> None:
    drawn = 0

    def counting(verdicts: Sequence[Verdict]) -> float | None:
        nonlocal drawn
        drawn += len(verdicts)
        return share(verdicts)

    low, high = score_interval([unit(0.5)] * 8_000, counting, 0.5)
    assert drawn == 800_000
    assert 0.48 < low < 0.5 < high < 0.52


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_it_holds_the_score_within_the_range_and_is_the_same_every_time(likely: list[float], value: float) -> None:
    units = [unit(one) for one in likely]
    low, high = score_interval(units, share, value)
    assert 0.0 <= low <= value <= high <= 1.0
    assert score_interval(units, share, value) == (low, high)


@pytest.mark.parametrize("count", [1, 4, 12])
def test_it_widens_with_doubt(count: int) -> None:
    widths = []
    for doubt in (0.0, 0.05, 0.2, 0.5):
        low, high = score_interval([unit(doubt)] * count, share, 0.0)
        widths.append(high - low)
    assert widths == sorted(widths)
    assert widths[0] == 0.0 < widths[-1]
