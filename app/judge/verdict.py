"""What a judge found about one unit, how sure it is, and how much of the unit it counts for."""

from collections.abc import Iterable, Mapping
from math import fsum, prod
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field

from app.domain.model import Model
from app.domain.run import Span
from app.judge.segment import Segment
from app.judge.subject import Subject


class Vote(Model):
    """One judgement among several on a unit: the labels that a model gave in one of its samples (numbered from 1)."""

    model: str
    sample: int
    labels: dict[str, str]


class Verdict(NamedTuple):
    """What the judge found about one unit.

    `labels` by field name; `reason` null where none was asked; `place` its index among the subject's units; `cited`
    the numbers (from 1) of the exhibit's texts that the verdict rests on. `confidence` in 0..1 is null where nothing
    tells it; `votes` are the judgements that it was taken from, where there were several. `share` is how much of the
    unit the formula counts for this verdict: 1, but for a verdict that is only more or less likely.
    """

    item: Segment
    labels: Mapping[str, str]
    reason: str | None
    place: int = 0
    cited: tuple[int, ...] = ()
    confidence: float | None = None
    votes: tuple[Vote, ...] | None = None
    share: float = 1.0


class Sureness(Model):
    """How sure a verdict is; a part of every scorer's verdicts, absent where nothing tells it.

    `confidence` in 0..1, and the `votes` of several samples or judges.
    """

    confidence: Annotated[float | None, Field(exclude_if=lambda value: value is None)] = None
    votes: Annotated[list[Vote] | None, Field(exclude_if=lambda value: value is None)] = None


class WeighedUnit(Model):
    """How likely each label of the judge's is for the unit with this number (from 1); null where nothing tells it."""

    number: int
    span: Span
    probabilities: dict[str, float] | None

    @classmethod
    def of(cls, unit: Segment, place: int, probabilities: Mapping[str, float] | None) -> Self:
        """Return what is told of the unit in this place."""
        span = Span(start=unit.start, end=unit.end)
        return cls(number=place + 1, span=span, probabilities=None if probabilities is None else dict(probabilities))


class Analysis(Model):
    """A part of what every scorer's analyze finds.

    `weighed`, with `scoring: expected` alone, are all units with the probabilities that the formula counted.
    """

    weighed: Annotated[list[WeighedUnit] | None, Field(exclude_if=lambda value: value is None)] = None


def verdicts_of_code(subject: Subject) -> list[Verdict]:
    """Return the verdicts on units about which no judge is asked."""
    return [Verdict(subject.units[index], labels, None, index) for index, labels in subject.decided.items()]


def counted(verdicts: Iterable[Verdict]) -> float:
    """Return how many units these verdicts count for."""
    return fsum(verdict.share for verdict in verdicts)


def quoting(verdict: Verdict, name: str) -> dict[str, Any]:
    """Return the fields of a verdict on words of a text: those of Sureness, its reason, the words under this name."""
    words, span = verdict.item.text, {"start": verdict.item.start, "end": verdict.item.end}
    return {"reason": verdict.reason, **sureness(verdict), name: words, "span": span}


def likely_any(verdicts: Iterable[Verdict]) -> float:
    """Return how likely it is that any unit counts: 1 less the product of what the verdicts on each leave out of it.

    1 where labels count, since a unit with a verdict counts for sure.
    """
    shares: dict[int, float] = {}
    for verdict in verdicts:
        shares[verdict.place] = shares.get(verdict.place, 0.0) + verdict.share
    return 1.0 - prod(max(1.0 - share, 0.0) for share in shares.values())


def sureness(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of Sureness."""
    return {"confidence": verdict.confidence, "votes": verdict.votes}
