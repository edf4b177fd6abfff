"""Arithmetic shared by the scorers' formulas."""

from decimal import ROUND_HALF_UP, Decimal

from app.domain.run import Direction


def scaled(value: float, scale: float) -> float:
    """Return a 0..1 value rounded half up to 4 decimals, times scale.

    Raises ValueError when the value is not within 0..1 (NaN included): such a number never leaves the engine.
    """
    if not 0.0 <= value <= 1.0:
        raise ValueError("a score lies between 0 and 1 before scaling")
    rounded = Decimal(repr(value)).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    return float(rounded * Decimal(repr(scale)))


def passed(score: float, threshold: float, direction: Direction) -> bool:
    """Return whether score is on the good side of threshold, both on the same scale."""
    if direction is Direction.LOWER_IS_BETTER:
        return score <= threshold
    return score >= threshold
