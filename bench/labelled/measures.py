"""From records to figures: one group of rows, measured."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from bench.labelled import statistics
from bench.labelled.records import Record
from bench.labelled.statistics import Interval


class Figure(NamedTuple):
    """A value and its 95 % interval; both None where it is not defined."""

    value: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a text took, on average over all that were asked, failed ones included."""

    judge_calls: float
    input_tokens: float
    output_tokens: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One group of rows.

    `figures` are over the rows that have a score, `coverage` is their share; `worst_case` is the accuracy with every
    other row counted as wrong. `failures` counts those by kind. `tuned` is the accuracy with thresholds chosen by
    cross-validation, and `pairs` the share of pairs in which the row with label 1 has the higher score.
    """

    asked: int
    judged: int
    positives: int
    figures: dict[str, Figure]
    coverage: Figure
    worst_case: Figure
    tuned: Figure
    pairs: Figure
    failures: dict[str, int]
    warnings: dict[str, int]
    cost: Cost

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self) | {
            "figures": {name: figure._asdict() for name, figure in self.figures.items()},
            **{name: getattr(self, name)._asdict() for name in ("coverage", "worst_case", "tuned", "pairs")},
        }


_OF_COUNTS = {
    "precision": statistics.precision,
    "recall": statistics.recall,
    "f1": statistics.f1,
    "kappa": statistics.kappa,
}
FIGURES = ("accuracy", *_OF_COUNTS, "auroc")


def said(record: Record, threshold: float) -> bool:
    """Whether a score says what label 1 says; a score at the threshold passes, as in the service."""
    assert record.score is not None
    return record.score >= threshold if record.higher_is_better else record.score > threshold


def _counts(records: Sequence[Record], threshold: float) -> statistics.Counts:
    return statistics.counts([(said(record, threshold), bool(record.label)) for record in records])


def _pair(record: Record) -> tuple[float, int]:
    assert record.score is not None
    return record.score, record.label


def _group(record: Record) -> str:
    return record.group


def _resampled(records: Sequence[Record], threshold: float) -> list[float | None]:
    counted = _counts(records, threshold)
    auroc = statistics.auroc([_pair(record) for record in records])
    return [*(figure(counted) for figure in _OF_COUNTS.values()), auroc]


def proportion(part: int, whole: int) -> Figure:
    """A share with Wilson's interval."""
    return Figure(part / whole if whole else None, statistics.wilson(part, whole))


def measure(records: Sequence[Record], threshold: float) -> Measured:
    """Measure a group of rows by their verdicts at a threshold."""
    judged = [record for record in records if record.score is not None]
    counted = _counts(judged, threshold)
    right = counted.true_positive + counted.true_negative
    intervals = statistics.bootstrap(judged, _group, lambda drawn: _resampled(drawn, threshold))
    resampled = map(_figure, _resampled(judged, threshold), intervals)
    figures = [proportion(right, len(judged)), *resampled]
    return Measured(
        asked=len(records),
        judged=len(judged),
        positives=sum(record.label for record in records),
        figures=dict(zip(FIGURES, figures, strict=True)),
        coverage=proportion(len(judged), len(records)),
        worst_case=proportion(right, len(records)),
        tuned=_tuned(judged),
        pairs=_pairs(judged),
        failures=dict(Counter(_failure(record) for record in records if record.score is None)),
        warnings=dict(Counter(record.warnings for record in judged if record.warnings)),
        cost=_cost(records),
    )


def _figure(value: float | None, interval: Interval | None) -> Figure:
    return Figure(value, None if value is None else interval)


def _tuned(judged: Sequence[Record]) -> Figure:
    if len({record.label for record in judged}) < 2:
        return Figure(None, None)
    verdicts = statistics.cross_validated(judged, _group, _pair)
    if verdicts is None:
        return Figure(None, None)
    return proportion(sum(one == other for one, other in verdicts), len(verdicts))


def _pairs(judged: Sequence[Record]) -> Figure:
    by_group: dict[str, list[Record]] = defaultdict(list)
    for record in judged:
        by_group[record.group].append(record)
    pairs = [group for group in by_group.values() if sorted(record.label for record in group) == [0, 1]]

    def ranked(groups: Sequence[list[Record]]) -> float | None:
        values = [statistics.auroc([_pair(record) for record in group]) or 0.0 for group in groups]
        return sum(values) / len(values) if values else None

    (interval,) = statistics.bootstrap(pairs, lambda group: group[0].group, lambda groups: [ranked(groups)])
    return _figure(ranked(pairs), interval)


def _failure(record: Record) -> str:
    return record.status if record.error is None else f"{record.status}: {record.error}"


def _cost(records: Sequence[Record]) -> Cost:
    def mean(values: list[float]) -> float:
        return round(sum(values) / len(values), 3) if values else 0.0

    return Cost(
        judge_calls=mean([record.judge_calls for record in records]),
        input_tokens=mean([record.input_tokens for record in records]),
        output_tokens=mean([record.output_tokens for record in records]),
        seconds=mean([record.seconds for record in records]),
    )
