"""The table of the fault suite: what every fault cost."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One fault: `slowest_s` is from the kill, or the fault's end, to the last run's end; `note` a figure beside."""

    fault: str
    server: str
    in_flight: int
    recovered: int
    lost: int
    duplicated: int
    slowest_s: float | None = None
    note: str = ""


HEAD = ("fault", "server", "runs in flight", "recovered", "lost", "duplicated", "slowest recovery", "note")


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as it is printed."""
    slowest = "" if row.slowest_s is None else f"{row.slowest_s:.1f} s"
    counts = (row.in_flight, row.recovered, row.lost, row.duplicated)
    return (row.fault, row.server, *map(str, counts), slowest, row.note)


def table(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [HEAD, *sorted(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    padded = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([padded[0], rule, *padded[1:]])


def write(path: Path, rows: list[Row]) -> None:
    """Write them as JSON, or as Markdown when the file's name ends so."""
    text = table(rows) if path.suffix == ".md" else json.dumps([asdict(row) for row in rows], indent=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def as_property(row: Row) -> tuple[str, dict[str, Any]]:
    """Return what a test's report carries, from another process too."""
    return "fault", asdict(row)
