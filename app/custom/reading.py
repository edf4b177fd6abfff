"""Read what a judge replied into the shape that was asked for, or find that it does not fit. Nothing is guessed."""

import math
import re
from collections.abc import Sequence
from typing import Any

from app.custom.shape import MAX_NUMBER, Shape
from app.domain.errors import WrongReply
from app.judge.labels import label_in, number_in, reason_in, text_in

_NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?")

Path = tuple[str | int, ...]


class Misfit(Exception):
    """A value that is not of the shape; `path` leads to it."""

    def __init__(self, path: Path = ()) -> None:
        super().__init__(path)
        self.path = path


def read(shape: Shape, value: Any, path: Path = ()) -> Any:
    """Return value in the shape's own form; raises Misfit.

    Labels, numbers and names are read as the engine reads them: case, spaces and quotes do not matter, and longer texts
    are cut. Values that were not asked for are left out; missing ones, and numbers out of range, never are guessed.
    """
    match shape.kind:
        case "object":
            return _object(shape, value, path)
        case "array":
            if not isinstance(value, list) or not shape.least <= len(value) <= shape.most:
                raise Misfit(path)
            return [read(shape.item, item, (*path, place)) for place, item in enumerate(value)]
        case "text":
            read_value: Any = (reason_in(value, shape.most) or "") if isinstance(value, str) else None
        case "label":
            read_value = label_in(value, shape.labels)
        case "boolean":
            label = label_in(value, ("yes", "no"))
            read_value = None if label is None else label == "yes"
        case _:
            read_value = _number(shape, value)
    if read_value is None:
        raise Misfit(path)
    return read_value


def _object(shape: Shape, value: Any, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misfit(path)
    given = {str(name).casefold(): inner for name, inner in value.items()}
    found = {}
    for name, inner in shape.properties.items():
        if name.casefold() not in given:
            raise Misfit((*path, name))
        found[name] = read(inner, given[name.casefold()], (*path, name))
    return found


def _number(shape: Shape, value: Any) -> float | int | None:
    number = number_in(value) if shape.kind == "integer" else _float_in(value)
    if number is None or not math.isfinite(number):
        return None
    fits = (shape.low is None or number >= shape.low) and (shape.high is None or number <= shape.high)
    return number if fits else None


def _float_in(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) <= MAX_NUMBER else None
    said = text_in(value)
    return float(said) if said is not None and _NUMBER.fullmatch(said) else None


def objects_in(shape: Shape, value: Any, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Read objects that each name their number `n`, in a list.

    An item whose object does not fit has no answer, nor has one with two that differ. Raises WrongReply where numbers
    that were not asked for stand in the place of others.
    """
    entries = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    numbered = [(number_in(entry.get("n")), entry) for entry in entries if isinstance(entry, dict)]
    named = {number for number, _ in numbered if number is not None}
    if named - set(numbers) and set(numbers) - named:
        raise WrongReply(
            "The judge numbered its verdicts otherwise than the items, re-asks included; "
            "try again or use a model that follows a JSON schema"
        )
    found: dict[int, dict[str, Any]] = {}
    disputed: set[int] = set()
    for number, entry in numbered:
        if number is None or number not in numbers:
            continue
        try:
            answer = read(shape, entry)
        except Misfit:
            disputed.add(number)
            continue
        if found.setdefault(number, answer) != answer:
            disputed.add(number)
    return {number: answer for number, answer in found.items() if number not in disputed}
