"""Verdicts for tests of formulas."""

from app.judge.segment import Segment
from app.judge.verdict import Verdict


def placed(place: int, **labels: str) -> Verdict:
    return verdict(**labels)._replace(place=place)


def verdict(reason: str | None = "Why.", **labels: str) -> Verdict:
    return Verdict(Segment(4, 9, "Words"), labels, reason)
