"""Labelled rows: read from JSONL files, sampled by file, and what each scorer can do with them."""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_snake

SCORER_OF_TASK = {"relevancy": "answer-relevancy"}
"""Where a row's `scorer` has another name than the scorer that answers its question."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text; `label` is 1 where the scorer should give a high score, else 0.

    `pair_id` is the same in rows that belong together. `task` is the scorer that the row is for.
    """

    file: str
    id: str
    task: str
    output: str
    label: int
    category: str
    lang: str
    input: str | None = None
    context: tuple[str, ...] | None = None
    ground_truth: str | None = None
    pair_id: str | None = None

    @property
    def scorer(self) -> str:
        """The id of the scorer that the row's label is about."""
        return SCORER_OF_TASK.get(self.task, self.task)

    @property
    def group(self) -> str:
        """What is drawn as one when rows are sampled again: the pair, or the row alone."""
        return self.pair_id or self.id

    def given(self, need: str) -> bool:
        """Whether the row has what a scorer calls `need` (`output`, `input`, `context`, `groundTruth`)."""
        return bool(getattr(self, to_snake(need), None))


def read_rows(folder: Path, files: Sequence[str]) -> list[Row]:
    """Return the labelled rows of these files of a folder; raises ValueError that names a file and a line."""
    return [row for name in files for row in _read_file(folder / name)]


def _read_file(path: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(_row(path.name, json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name}, line {number}: {type(error).__name__}: {error}") from None
    return rows


def _row(file: str, said: dict[str, Any]) -> Row:
    if said["label"] not in (0, 1):
        raise ValueError("label must be 0 or 1")
    context = said.get("context")
    return Row(
        file=file,
        id=said["id"],
        task=said["scorer"],
        output=said["output"],
        label=said["label"],
        category=said.get("category", ""),
        lang=said.get("lang", ""),
        input=said.get("input"),
        context=tuple(context) if context else None,
        ground_truth=said.get("groundTruth"),
        pair_id=said.get("pair_id"),
    )


def sampled(rows: Iterable[Row], limit: int | None, seed: int) -> list[Row]:
    """Return at most `limit` rows of every file and scorer, drawn so that labels and categories keep their shares.

    The same seed draws the same rows, and a larger limit draws the same ones and more. Pairs stay together.
    """
    by_file: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_file[row.file, row.task].append(row)
    return [row for group in by_file.values() for row in _drawn(group, limit, seed)]


def _drawn(rows: list[Row], limit: int | None, seed: int) -> list[Row]:
    if limit is None or limit >= len(rows):
        return rows
    strata: dict[tuple[Any, ...], list[list[Row]]] = defaultdict(list)
    for group in _groups(rows):
        strata[tuple(sorted((row.label, row.category) for row in group))].append(group)
    draw = random.Random(seed)
    ranked = []
    for key in sorted(strata):
        groups = sorted(strata[key], key=lambda group: group[0].id)
        draw.shuffle(groups)
        # The middle of the part that each takes of its stratum: in this order every prefix keeps the shares.
        ranked += [((place + 0.5) / len(groups), key, group) for place, group in enumerate(groups)]
    chosen: list[Row] = []
    for _, _, group in sorted(ranked, key=lambda entry: entry[:2]):
        if len(chosen) + len(group) <= limit:
            chosen += group
    return chosen


def _groups(rows: Iterable[Row]) -> list[list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    return list(groups.values())
