"""What was measured, as tables for a terminal and as JSON."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from bench.labelled.injection import Flips
from bench.labelled.measures import FIGURES, Figure, Measured, measure
from bench.labelled.picture import Line
from bench.labelled.records import Record
from bench.labelled.replies import Reading

_PICTURED = ("accuracy", "auroc")
_ASKED = ("scorer", "asked by")


class Group(NamedTuple):
    """Rows that belong together (`by` file, category or language) under one scorer and its options, measured."""

    by: str
    name: str
    scorer: str
    version: str
    options: str
    measured: Measured


class Injection(NamedTuple):
    """The attacks on one scorer under some options; `texts` were caught without them, of so many bad ones."""

    scorer: str
    options: str
    bad: int
    texts: int
    flips: list[Flips]
    mistaken: Figure


@dataclass(slots=True)
class Report:
    """Everything that one run of the bench tells."""

    model: str
    threshold: float
    groups: list[Group] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    injections: list[Injection] = field(default_factory=list)
    replies: dict[str, dict[Reading, int]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "model": self.model,
            "threshold": self.threshold,
            "groups": [group._asdict() | {"measured": group.measured.as_json()} for group in self.groups],
            "skipped": self.skipped,
            "injection": [
                one._asdict() | {"flips": [kind.as_json() for kind in one.flips], "mistaken": one.mistaken._asdict()}
                for one in self.injections
            ],
            "replies": self.replies,
        }

    def lines(self) -> list[Line]:
        """Return the lines of the picture: every file under every scorer and its options."""
        return [
            Line(
                f"{group.name} · {group.scorer} · {options_in_short(group.options)}",
                {name: group.measured.figures[name] for name in _PICTURED},
            )
            for group in self.groups
            if group.by == "file"
        ]


def grouped(records: Iterable[Record], threshold: float) -> list[Group]:
    """Measure records by file, by category within it, and by language over all files."""
    rows: dict[tuple[str, str, str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        about = (record.scorer, record.scorer_version, record.options)
        file = record.file.removesuffix(".jsonl")
        rows["file", file, *about].append(record)
        rows["category", f"{file}: {record.category}", *about].append(record)
        rows["language", record.lang, *about].append(record)
    levels = ("file", "category", "language")
    ordered = sorted(rows.items(), key=lambda entry: (levels.index(entry[0][0]), *entry[0][1:3]))
    return [Group(*key, measure(group, threshold)) for key, group in ordered]


def shown(figure: Figure) -> str:
    """A figure as "0.71 [0.62, 0.79]"."""
    if figure.value is None:
        return "-"
    value, *ends = (f"{round(number, 2) + 0.0:.2f}" for number in (figure.value, *(figure.interval or ())))
    return f"{value} [{', '.join(ends)}]" if ends else value


def print_report(console: Console, report: Report) -> None:
    """Print every table that there is something for."""
    for by in ("file", "category", "language"):
        groups = [group for group in report.groups if group.by == by]
        if groups:
            console.print(_quality(by, groups, report.threshold))
    files = [group for group in report.groups if group.by == "file"]
    if files:
        console.print(_accuracies(files))
        console.print(_cost(files))
        console.print(_failures(files))
    for one in report.injections:
        console.print(_injection(one))
    if report.replies:
        console.print(_replies(report.replies))
    for reason, count in report.skipped.items():
        console.print(f"skipped: {count} rows, {reason}")


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _quality(by: str, groups: Sequence[Group], threshold: float) -> Table:
    table = _table(
        f"Quality by {by}: verdicts at {threshold:g} and the order of scores, over the rows that have a score",
        (by, *_ASKED),
        ("judged", "label 1", *FIGURES),
    )
    for group in groups:
        m = group.measured
        numbers = (f"{m.judged}/{m.asked}", str(m.positives))
        table.add_row(group.name, *_asked(group), *numbers, *map(shown, m.figures.values()))
    return table


def _accuracies(groups: Sequence[Group]) -> Table:
    table = _table(
        "Accuracy otherwise: unscored rows counted as wrong; thresholds by cross-validation; pairs in the right order",
        ("file", *_ASKED),
        ("worst case", "tuned", "pairs"),
    )
    for group in groups:
        m = group.measured
        table.add_row(group.name, *_asked(group), *map(shown, (m.worst_case, m.tuned, m.pairs)))
    return table


def _asked(group: Group) -> tuple[str, str]:
    return f"{group.scorer} {group.version}", options_in_short(group.options)


def options_in_short(options: str) -> str:
    """Options in a few words: the strategy, then the others as name=value."""
    named: dict[str, Any] = json.loads(options)
    told = {name: value if isinstance(value, str) else json.dumps(value) for name, value in named.items()}
    strategy = told.pop("strategy")
    return " ".join([strategy, *(f"{name}={value}" for name, value in told.items() if name != "includeReason")])


def _cost(groups: Sequence[Group]) -> Table:
    table = _table("What a text took", ("file", *_ASKED), ("judge calls", "tokens in", "tokens out", "seconds"))
    for group in groups:
        cost = group.measured.cost
        taken = (cost.judge_calls, cost.input_tokens, cost.output_tokens, cost.seconds)
        table.add_row(group.name, *_asked(group), *(f"{value:.1f}" for value in taken))
    return table


def _failures(groups: Sequence[Group]) -> Table:
    table = _table("Rows without a score, and scores with a warning", ("file", *_ASKED, "kind"), ("rows", "coverage"))
    for group in groups:
        m = group.measured
        warned = {f"scored, with {codes}": count for codes, count in m.warnings.items()}
        for kind, count in sorted((m.failures | warned).items()) or [("none", 0)]:
            table.add_row(group.name, *_asked(group), kind, str(count), shown(m.coverage))
    return table


def _injection(one: Injection) -> Table:
    table = _table(
        f"Attacks on {one.scorer} {options_in_short(one.options)}: verdicts that flip to good. "
        f"{one.texts} of {one.bad} bad texts are caught without; benign texts called bad: {shown(one.mistaken)}",
        ("attack",),
        ("judged", "flipped", "score change"),
    )
    for kind in one.flips:
        change = "-" if kind.change is None else f"{kind.change:+.2f}"
        table.add_row(kind.kind, f"{kind.judged}/{kind.asked}", shown(kind.flipped), change)
    return table


def _replies(replies: dict[str, dict[Reading, int]]) -> Table:
    table = _table("Broken replies through the parser", ("asked for",), tuple(Reading))
    for asks, readings in replies.items():
        table.add_row(asks, *(str(readings.get(reading, 0)) for reading in Reading))
    return table
