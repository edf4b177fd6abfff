"""What a scorer is: definitions for the judge, the shape of its answers, a formula and the words for its numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app.domain.model import Model
from app.domain.request import Options, Strategy
from app.domain.run import Direction
from app.judge.segment import Segment


class Band(NamedTuple):
    """A named part of the 0..1 range, both ends included; numbers between two bands belong to the upper one."""

    name: str
    low: float
    high: float


class Verdict(NamedTuple):
    """What the judge found about one item; `labels` by field name, `reason` null where none was asked."""

    item: Segment
    labels: Mapping[str, str]
    reason: str | None


@dataclass(frozen=True, eq=False, slots=True)
class Selection:
    """A step that asks which segments matter; the judge answers `{key: [numbers]}`."""

    key: str
    system: str


@dataclass(frozen=True, eq=False, slots=True)
class Assessment:
    """A step that asks for one verdict an item: a label for each of `fields`, after a short reason when `reasons`.

    `read` turns the labels as the judge gave them into the verdict's own; None means that the item turned out to be
    no item at all (a fact where opinions are judged). `moot` names a field that does not matter beside a label of
    another one, as (field, label): whatever the judge gives for it then, even nothing, is left out of the labels.
    """

    fields: Mapping[str, tuple[str, ...]]
    system: str
    reasons: bool
    read: Callable[[Mapping[str, str]], Mapping[str, str] | None]
    moot: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Scorer:
    """One scorer, complete: a module of `app.scorers` that defines `SCORER` is found and served.

    `needs` are the inputs (camelCase) without which it can't score. `selection` is the preprocess step, where there is
    one; `selected` and `assessed` make the step results, whose JSON schemas are `step_schemas`, by their names in a
    run. `value` is the formula: from verdicts and options to 0..1, or to None when there is nothing to score. `weight`
    says how much a verdict counts for the reason (0: not worth a mention), `describe` names what it found,
    `explanation` tells the judge how to write the reason, and `nothing_found` is the reason when no verdict has
    weight, by language (English at least).
    """

    id: str
    version: str
    description: str
    direction: Direction
    needs: tuple[str, ...]
    options: type[Options]
    bands: tuple[Band, ...]
    step_schemas: Mapping[str, dict[str, Any]]
    selection: Selection | None
    selected: Callable[[Sequence[Segment]], Model] | None
    assessments: Mapping[Strategy, Assessment]
    assessed: Callable[[Sequence[Verdict]], Model]
    value: Callable[[Sequence[Verdict], Any], float | None]
    weight: Callable[[Verdict], float]
    describe: Callable[[Verdict], str]
    explanation: str
    nothing_found: Mapping[str, str]

    def interpret(self, value: float) -> str:
        """Return the name of the band that a 0..1 value falls in."""
        return next(band.name for band in sorted(self.bands, key=lambda band: band.high) if value <= band.high)
