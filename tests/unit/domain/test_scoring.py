import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.run import Direction
from app.domain.scoring import passed, scaled


@pytest.mark.parametrize(
    ("value", "scale", "score"),
    [
        (1 / 3, 1.0, 0.3333),
        (2 / 3, 1.0, 0.6667),
        (2 / 3, 10.0, 6.667),
        (0.00005, 1.0, 0.0001),
        (0.00004999, 1.0, 0.0),
        (0.12345, 1.0, 0.1235),
        (0.12344999, 100.0, 12.34),
        (1.0, 7.0, 7.0),
        (0.0, 1e6, 0.0),
        (1e-300, 1.0, 0.0),
    ],
)
def test_rounds_half_up_to_four_decimals_before_scaling(value: float, scale: float, score: float) -> None:
    assert scaled(value, scale) == score


@given(st.floats(0, 1), st.floats(0, 1_000_000, exclude_min=True))
def test_stays_within_the_scale_and_near_the_value(value: float, scale: float) -> None:
    score = scaled(value, scale)
    assert 0.0 <= score <= scale
    assert abs(Decimal(scaled(value, 1.0)) - Decimal(value)) <= Decimal("0.00005000001")


@given(st.floats(0, 1), st.floats(0, 1))
def test_keeps_the_order(one: float, other: float) -> None:
    lower, upper = sorted((one, other))
    assert scaled(lower, 1.0) <= scaled(upper, 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-9, 1.0000001, 85.0])
def test_refuses_what_is_no_score(value: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        scaled(value, 1.0)


@pytest.mark.parametrize(
    ("score", "direction", "good"),
    [
        (0.0, Direction.LOWER_IS_BETTER, True),
        (0.5, Direction.LOWER_IS_BETTER, True),
        (0.5001, Direction.LOWER_IS_BETTER, False),
        (0.4999, Direction.HIGHER_IS_BETTER, False),
        (0.5, Direction.HIGHER_IS_BETTER, True),
        (1.0, Direction.HIGHER_IS_BETTER, True),
    ],
)
def test_a_threshold_is_read_with_the_direction(score: float, direction: Direction, good: bool) -> None:
    assert passed(score, 0.5, direction) is good
