"""Broken replies through the parser: which does it read, which does it refuse, and does it ever take a wrong value?"""

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.domain.errors import JudgeError
from app.judge.labels import label_in
from app.judge.parse import answer_in
from app.ports import Completion, FinishReason

REPLIES_FILE = "malformed.jsonl"
UNPARSEABLE = "unparseable"
_LABELS = ("yes", "no", "idk")


class Reading(StrEnum):
    """What became of a reply."""

    RIGHT = "right"
    REFUSED = "refused, though it could be read"
    WRONG = "wrong value taken"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply, what it answers (`asks`), and every reading of it that is right."""

    id: str
    asks: str
    raw: str
    right: tuple[Any, ...]


def read_replies(path: Path) -> list[Reply]:
    """Return the replies of a file."""
    said = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Reply(one["id"], one["asks"], one["raw"], (one["expected"], *one["also_ok"])) for one in said]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 or not math.isfinite(value):
        raise ValueError
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - one error for all that can't be read
    return value


def _words(value: Any) -> list[str]:
    words = [label_in(verdict["verdict"], _LABELS) for verdict in value]
    if None in words:
        raise ValueError
    return [word for word in words if word]


_FIELDS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "score_reason": {"score": _number},
    "pass_score": {"pass": _truth, "score": _number},
    "verdicts": {"verdicts": _words},
}
ASKED = tuple(_FIELDS)
"""The kinds of reply that are JSON documents; the parser reads no others."""


def reading_of(reply: Reply) -> Reading:
    """Tell how the parser reads a reply of one of the kinds in ASKED."""
    completion = Completion(reply.raw, FinishReason.STOP, "bench/none")
    try:
        read: Any = {key: value_of(answer_in(completion, key)) for key, value_of in _FIELDS[reply.asks].items()}
    except (JudgeError, ValueError, TypeError, KeyError):
        read = UNPARSEABLE
    if any(_agrees(read, right) for right in reply.right):
        return Reading.RIGHT
    return Reading.REFUSED if read == UNPARSEABLE else Reading.WRONG


def _agrees(read: Any, right: Any) -> bool:
    """Whether a reading equals the right one on every key named there."""
    if not isinstance(read, dict) or not isinstance(right, dict):
        return bool(read == right)
    return all(read.get(key) == value for key, value in right.items())


def readings(replies: list[Reply]) -> dict[str, Counter[Reading]]:
    """Count the readings of every kind in ASKED."""
    return {asks: Counter(reading_of(reply) for reply in replies if reply.asks == asks) for asks in ASKED}
