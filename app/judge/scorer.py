"""What a scorer is: definitions for the judge, the shape of its answers, a formula and the words for its numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

from app.domain.model import Model
from app.domain.request import ExampleSet, Options, RunRequest, Scoring, Strategy
from app.domain.run import Direction
from app.domain.scoring import passed, scaled
from app.judge.exhibit import Exhibit
from app.judge.subject import Subject, output_segments
from app.judge.verdict import Verdict

NOTHING_TO_SCORE = {
    "en": "This text holds nothing that could be judged.",
    "fr": "Ce texte ne contient rien qui puisse être évalué.",
    "ko": "이 글에는 평가할 수 있는 내용이 없습니다.",
    "ja": "このテキストには評価できる内容がありません。",
    "de": "Dieser Text enthält nichts, was sich beurteilen ließe.",
    "es": "Este texto no contiene nada que se pueda evaluar.",
    "pt": "Este texto não contém nada que possa ser avaliado.",
    "zh": "这段文本中没有可以评判的内容。",
}
"""The usual reason of a run without a score."""


class Band(NamedTuple):
    """A named part of the 0..1 range, both ends included; numbers between two bands belong to the upper one."""

    name: str
    low: float
    high: float


def five_bands(*names: str) -> tuple[Band, ...]:
    """Return five bands of these names, the lowest first; each end of the range has its own."""
    bounds = ((0.0, 0.0), (0.1, 0.3), (0.4, 0.6), (0.7, 0.9999), (1.0, 1.0))
    return tuple(Band(name, *both) for name, both in zip(names, bounds, strict=True))


ALWAYS = 1 << 62


@dataclass(frozen=True, slots=True)
class View:
    """What the judge is shown beside the units it decides on.

    `neighbours`: the units around them. `question_limit`: the input as what the text answers, unless it is longer
    (code points; 0 for never). `exhibits`: other texts, whole; when they are `piecewise` and do not fit the model,
    piece by piece, and then the label that comes first in an assessment's first field counts for a unit.
    """

    neighbours: bool = True
    question_limit: int = ALWAYS
    exhibits: tuple[Exhibit, ...] = ()
    piecewise: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Selection:
    """A step that asks which units matter; the judge answers `{key: [numbers]}`."""

    key: str
    system: str
    view: View = View()


@dataclass(frozen=True, eq=False, slots=True)
class Extraction:
    """A step that asks for the short statements in every unit, which are then judged in their place.

    The judge answers `{segments: [{n, key: [texts]}]}`, an entry for every unit, empty where it has none. The answers
    belong to the extraction and not to a scorer: all that use it over one text share one call. `version` changes with
    the prompt and the schema.
    """

    name: str
    version: str
    key: str
    system: str
    view: View


class Example(NamedTuple):
    """A unit of an example: its text, the labels that it should get by field, why, and the numbers to be cited."""

    text: str
    labels: Mapping[str, str]
    reason: str
    cited: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """The label of the only field."""
        (label,) = self.labels.values()
        return label


@dataclass(frozen=True, eq=False, slots=True)
class Examples:
    """Worked examples for the judge: units with their verdicts, and the lines that stand beside them (`P1: ...`)."""

    units: tuple[Example, ...]
    beside: tuple[str, ...] = ()

    def with_field(self, field: str) -> Self:
        """Return the same examples for an assessment whose only field has this name."""
        return replace(self, units=tuple(unit._replace(labels={field: unit.label}) for unit in self.units))

    def without(self, label: str) -> Self:
        """Return those that have another label in their only field."""
        return replace(self, units=tuple(unit for unit in self.units if unit.label != label))


class Field(NamedTuple):
    """A field of a verdict and its labels."""

    field: str
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Assessment:
    """A step that asks for one verdict a unit: a label for each of `fields`, after a short reason when `reasons`.

    `read` turns the labels as the judge gave them into the verdict's own; None means that the unit turned out to be
    none at all (a fact where opinions are judged). `moot` names a field that does not matter beside a label of
    another one, as (field, label): whatever the judge gives for it then, even nothing, is left out of the labels.
    `cites` is the exhibit of the view whose numbers each verdict names, which takes `reasons`. `units` is how the
    judge is told what it decides on, in the plural. `examples` stand in the prompt when they are asked for.
    """

    fields: Mapping[str, tuple[str, ...]]
    system: str
    reasons: bool
    read: Callable[[Mapping[str, str]], Mapping[str, str] | None]
    moot: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    view: View = View()
    cites: Exhibit | None = None
    units: str = "segments"
    examples: Examples | None = None

    @property
    def first(self) -> Field:
        """The first of the fields: the one that decides, and whose labels are weighed by their probabilities."""
        return Field(*next(iter(self.fields.items())))


def as_verdict(labels: Mapping[str, str]) -> Mapping[str, str] | None:
    """Read the label of an assessment with one field as a verdict; "none" means that the unit turned out to be none."""
    (label,) = labels.values()
    return None if label == "none" else {"verdict": label}


def read_as(name: str) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    """Return a reader that gives the label of an assessment with one field this name."""

    def read(labels: Mapping[str, str]) -> Mapping[str, str]:
        (label,) = labels.values()
        return {name: label}

    return read


def by_every_strategy(assessment: Assessment) -> Mapping[Strategy, Assessment]:
    """Return an assessment of one field by strategy: the same units and definitions, without reasons for labels."""
    (labels,) = assessment.fields.values()
    examples = assessment.examples and assessment.examples.with_field("label")
    bare = replace(assessment, fields={"label": labels}, reasons=False, cites=None, examples=examples)
    return {Strategy.THREE_STEP: assessment, Strategy.SINGLE_CALL: assessment, Strategy.LABELS: bare}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Inquiry:
    """One thing that a scorer asks: about which subject, what is looked for in it first, and for which verdicts.

    `preprocess` is left out by the strategies of one call, whose assessments are about the subject's own units.
    Without any unit of an `essential` inquiry there is nothing to score, and no verdict is asked for.
    `narrowed` chooses among what it found.
    """

    assessments: Mapping[Strategy, Assessment]
    preprocess: Selection | Extraction | None = None
    subject: Callable[[RunRequest, Any], Subject] = output_segments
    essential: bool = False
    narrowed: Callable[[Subject, Any], Subject] = lambda found, _: found


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Measure:
    """What every scorer tells about itself, whether a judge does its work or code alone.

    `needs` are the inputs (camelCase) without which it can't score. With `needs_messages` the output has to be
    messages, which may hold tool calls and no text. `takes_votes` tells whether several judgements on one unit may be
    asked for. `step_schemas` are the JSON schemas of its step results, by their
    names in a run. `bands` name the parts of the 0..1 range.
    """

    uses_judge: ClassVar[bool]
    takes_votes: ClassVar[bool] = False

    id: str
    version: str
    description: str
    direction: Direction
    needs: tuple[str, ...]
    needs_messages: bool = False
    options: type[Options]
    bands: tuple[Band, ...]
    step_schemas: Mapping[str, dict[str, Any]]

    def needed(self, options: Options) -> tuple[str, ...]:  # noqa: ARG002 - for scorers whose options change their needs
        """Return the inputs without which it can't score under these options."""
        return self.needs

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """The values of `options.strategy` that it takes."""
        return ()

    @property
    def scorings(self) -> tuple[Scoring, ...]:
        """The values of `options.scoring` that it takes."""
        return ()

    @property
    def example_sets(self) -> tuple[ExampleSet, ...]:
        """The values of `options.examples` that it takes."""
        return ()

    def interpret(self, value: float) -> str:
        """Return the name of the band that a 0..1 value falls in."""
        return next(band.name for band in sorted(self.bands, key=lambda band: band.high) if value <= band.high)

    def score_of(self, value: float, scale: float, threshold: float | None) -> dict[str, Any]:
        """Return what a run tells of a 0..1 value: `score` on the caller's scale, `interpretation` and `passed`."""
        score = scaled(value, scale)
        return {
            "score": score,
            "interpretation": self.interpret(scaled(value, 1.0)),
            "passed": None if threshold is None else passed(score, threshold, self.direction),
        }


def _output(request: RunRequest) -> str:
    return request.text


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Scorer(Measure):
    """A scorer that asks a judge, complete: a module of `app.scorers` that defines `SCORER` is found and served.

    `inquiries` are asked side by side. `selected` (which gets the units of each inquiry) and `assessed` (all verdicts)
    make the step results. `value` is the formula: from verdicts and options to 0..1, or to None when there is nothing
    to score. `weight` says how much a verdict counts for the reason (0: not worth a mention), `describe` names what it
    found, `explanation` tells the judge how to write the reason, `nothing_found` is the reason when no verdict has
    weight, and `nothing_to_score` when there is no score, both by language (English at least), in that of the `scored`
    text. `counts_shares` says that `value` counts every verdict by its share, so that probabilities may stand in for
    labels, and that what `assessed` makes is an Analysis.
    """

    uses_judge = True
    takes_votes = True

    inquiries: tuple[Inquiry, ...]
    selected: Callable[..., Model] | None
    assessed: Callable[[Sequence[Verdict]], Model]
    value: Callable[[Sequence[Verdict], Any], float | None]
    weight: Callable[[Verdict], float]
    describe: Callable[[Verdict], str]
    explanation: str
    nothing_found: Mapping[str, str]
    nothing_to_score: Mapping[str, str] = field(default_factory=lambda: NOTHING_TO_SCORE)
    counts_shares: bool = False
    scored: Callable[[RunRequest], str] = _output

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """The strategies that every inquiry has an assessment for."""
        return tuple(
            strategy for strategy in Strategy if all(strategy in inquiry.assessments for inquiry in self.inquiries)
        )

    @property
    def scorings(self) -> tuple[Scoring, ...]:
        """Both, if the formula counts shares."""
        return tuple(Scoring) if self.counts_shares else (Scoring.HARD,)

    @property
    def example_sets(self) -> tuple[ExampleSet, ...]:
        """Both, if there are examples for all that it asks."""
        assessments = [one for inquiry in self.inquiries for one in inquiry.assessments.values()]
        return tuple(ExampleSet) if all(one.examples for one in assessments) else (ExampleSet.NONE,)
