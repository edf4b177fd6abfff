"""What became of each row, in an append-only file: a run that was stopped goes on where it was."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

PASSING = frozenset({"judge_unavailable", "judge_timeout", "run_expired", "not_configured"})
"""Errors that tell of the endpoint and not of the judge's answers: such rows are tried again."""


class Key(NamedTuple):
    """What makes two judgements the same: the judge, the scorer and its version, the options, the row, the attack."""

    model: str
    scorer: str
    scorer_version: str
    options: str
    row: str
    attack: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """One row judged once; no texts. `options` is canonical JSON, `seconds` the wall time of the run.

    `score` is null unless `status` is completed; `error` is the code and, where there is one, the reason within it;
    `warnings` are the codes of the run's warnings, comma between.
    """

    model: str
    scorer: str
    scorer_version: str
    options: str
    file: str
    row: str
    group: str
    category: str
    lang: str
    label: int
    status: str
    score: float | None
    higher_is_better: bool
    error: str | None
    judge_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    warnings: str = ""
    attack: str | None = None
    attack_kind: str | None = None

    @property
    def key(self) -> Key:
        """What it is a judgement of."""
        return Key(self.model, self.scorer, self.scorer_version, self.options, self.row, self.attack)

    @property
    def is_final(self) -> bool:
        """Whether asking again could only repeat it."""
        return self.error is None or self.error.partition(":")[0] not in PASSING


class RecordFile:
    """The records of a folder; the last one of a key counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = {record.key: record for record in _read(path)}

    def has(self, key: Key) -> bool:
        """Whether this was judged, and need not be again."""
        record = self.records.get(key)
        return record is not None and record.is_final

    def add(self, record: Record) -> None:
        """Keep a record, on disk before anything else is judged."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")
        self.records[record.key] = record

    def of(self, keys: Iterable[Key]) -> list[Record]:
        """Return the records of these keys, without those that are missing."""
        return [self.records[key] for key in keys if key in self.records]


def _read(path: Path) -> Iterator[Record]:
    """Read all records; what a stop in the middle of a line left behind is passed over."""
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
    for line in text.splitlines():
        try:
            yield Record(**json.loads(line))
        except (ValueError, TypeError):
            continue
