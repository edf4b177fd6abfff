"""Read what a judge wrote for a label or a number, or find that it can't be read. Nothing is guessed."""

import math
import re
from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any

_AROUND = " \t\r\n\"'`*“”‘’«»「」.。!！"
_NUMBER = re.compile(r"\[?\s*(-?\d{1,9})(?:\.0+)?\s*\]?[.)]?")
_EXPLAINED = re.compile(r"([\w -]+?)\s*[,.;:(—–]\s*(.*)|([\w ]+?)\s+-+\s+(.*)", re.DOTALL)
_IN_SIGHT = 200  # code points: a label stands at the beginning, and the patterns here take more than linear time
_SOON = 6
_LABEL_WORDS = (1, 2, 3)
_GROUNDS = frozenset({"because", "since", "as", "for", "given", "although", "though", "while"})
_CORRECTIONS = frozenset({"actually", "rather", "mean", "or", "instead", "but", "sorry", "wait", "correction"})
_TRUTH = {"true": "yes", "false": "no"}


def label_in(value: Any, labels: tuple[str, ...]) -> str | None:
    """Return which of labels the judge meant, or None.

    Case, spaces, quotes and a full stop do not matter, true and false stand for yes and no, and an explanation may
    follow the label ("Yes, because ..."). A label that is only mentioned somewhere is not meant, and neither of two is
    where the explanation soon puts another in place of the first ("No, actually yes").
    """
    known = label_forms(labels)
    if isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    said = " ".join(value.strip(_AROUND).split())[:_IN_SIGHT]
    if (label := known.get(plain_form(said))) is not None:
        return label
    explained = _EXPLAINED.fullmatch(said)
    if explained is None:
        return None
    first, explanation = (part for part in explained.groups() if part is not None)
    label = known.get(plain_form(first))
    return None if label is None or _disputes(explanation, label, known) else label


def _disputes(explanation: str, label: str, known: Mapping[str, str]) -> bool:
    """Whether another label stands among the explanation's first words, save in a subordinate clause of grounds."""
    words = [word for word in re.split(r"[\s,.;:!?()]+", explanation) if word][:_SOON]
    for begin, count in product(range(len(words)), _LABEL_WORDS):
        other = known.get(plain_form(" ".join(words[begin : begin + count])), label)
        gives_grounds = begin > 0 and words[0].casefold() in _GROUNDS
        if other != label and not (gives_grounds and _CORRECTIONS.isdisjoint(map(str.casefold, words[:begin]))):
            return True
    return False


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


def reason_in(value: Any, length: int) -> str | None:
    """Return a text as text_in does, no longer than length code points: cut at a space if it can be, with "…"."""
    text = text_in(value)
    if text is None or len(text) <= length:
        return text
    words, space, _ = text[:length].rpartition(" ")
    kept = words if space and len(words) > length // 2 else text[: length - 1]
    return f"{kept.rstrip()}…"


@cache
def label_forms(labels: tuple[str, ...]) -> Mapping[str, str]:
    """Return labels by their plain forms; true and false stand for yes and no where these are labels."""
    forms = {plain_form(label): label for label in labels}
    return {form: forms[label] for form, label in _TRUTH.items() if label in forms} | forms


def plain_form(text: str) -> str:
    """Return a label as it is compared: without case, quotes and marks around it, spaces and dashes as underscores."""
    return re.sub(r"[\s_-]+", "_", text.strip(_AROUND).casefold())
