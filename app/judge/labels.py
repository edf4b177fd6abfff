"""Read what a judge wrote for a label or a number, or find that it can't be read. Nothing is guessed."""

import math
import re
from functools import cache
from typing import Any

_AROUND = " \t\r\n\"'`*“”‘’«»「」.。!！"
_NUMBER = re.compile(r"\[?\s*(-?\d{1,9})(?:\.0+)?\s*\]?[.)]?")
_EXPLAINED = re.compile(r"([\w -]+?)\s*[,.;:(—–]\s*(.*)|([\w ]+?)\s+-+\s+(.*)", re.DOTALL)
_IN_SIGHT = 200  # code points: a label stands at the beginning, and the patterns here take more than linear time
_TRUTH = {"true": "yes", "false": "no"}


def label_in(value: Any, labels: tuple[str, ...]) -> str | None:
    """Return which of labels the judge meant, or None.

    Case, spaces, quotes and a full stop do not matter, true and false stand for yes and no, and an explanation may
    follow the label ("Yes, because ..."). A label that is only mentioned somewhere is not meant.
    """
    known = _by_plain_form(labels)
    if isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    said = " ".join(value.strip(_AROUND).split())[:_IN_SIGHT]
    plain = _plain(said)
    if (label := known.get(_TRUTH.get(plain, plain))) is not None:
        return label
    explained = _EXPLAINED.fullmatch(said)
    if explained is None:
        return None
    first, explanation = (part for part in explained.groups() if part is not None)
    follows = _plain(re.split(r"[\s,.;:]", explanation, maxsplit=1)[0])
    label = known.get(_TRUTH.get(_plain(first), _plain(first)))
    disputed = follows in known and known[follows] != label
    return None if disputed else label


def number_in(value: Any) -> int | None:
    """Return the item number that the judge meant (3, 3.0, "3", "[3]"), or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(match.group(1)) if match else None


def text_in(value: Any) -> str | None:
    """Return a text that the judge wrote, fit to be stored (no NUL, no half surrogate pairs), or None."""
    if not isinstance(value, str):
        return None
    text = value.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
    return text or None


@cache
def _by_plain_form(labels: tuple[str, ...]) -> dict[str, str]:
    return {_plain(label): label for label in labels}


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", "_", text.strip(_AROUND).casefold())
