"""From pydantic's errors to Faults: JSON pointers a caller can follow, and never a submitted value."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.domain.errors import Fault

MAX_FAULTS = 50
MAX_SEGMENT = 64
SAFE_IN_FRAGMENT = "!$&'()*+,;=:@?-._~"


class _Located(NamedTuple):
    fault: Fault
    branches: tuple[str, ...]


def faults_of(error: ValidationError, document: Any, base: str = "#") -> tuple[Fault, ...]:
    """Return one Fault per place in `document` (what was validated), pointers below `base`; at most 50.

    Where a value fits no branch of a union, only the faults of the branch that got furthest are told.
    """
    located = [_located(detail, document, base) for detail in error.errors(include_url=False, include_input=False)]
    return tuple(_one_per_place(_without_other_branches(located)))[:MAX_FAULTS]


def pointer(base: str, path: Iterable[str | int]) -> str:
    """Return path as a JSON pointer (RFC 6901) in URI fragment form below base; long names are cut."""
    segments = (str(part)[:MAX_SEGMENT].replace("~", "~0").replace("/", "~1") for part in path)
    return "/".join((base, *(quote(segment.encode(errors="replace"), safe=SAFE_IN_FRAGMENT) for segment in segments)))


def _located(detail: ErrorDetails, document: Any, base: str) -> _Located:
    path, branches = _path_in(document, detail["loc"], missing=detail["type"] == "missing")
    places = tuple(pointer(base, path[:depth]) for depth in branches)
    return _Located(Fault(pointer=pointer(base, path), code=detail["type"], detail=detail["msg"]), places)


def _path_in(document: Any, loc: Sequence[str | int], *, missing: bool) -> tuple[list[str | int], list[int]]:
    """Return loc without pydantic's own marks (union branches, "[key]"), and the depths at which it chose a branch."""
    path: list[str | int] = []
    branches: list[int] = []
    for position, part in enumerate(loc):
        if _holds(document, part):
            document = document[part]
        elif not (missing and position == len(loc) - 1):
            branches.append(len(path))
            continue
        path.append(part)
    return path, branches


def _holds(document: Any, part: str | int) -> bool:
    if isinstance(document, list):
        return isinstance(part, int) and part < len(document)
    return isinstance(document, dict) and part in document


def _without_other_branches(located: list[_Located]) -> list[Fault]:
    """Drop what a union's branches say about the whole value when another branch found the fault inside it."""
    entered = {place for item in located for place in item.branches if item.fault.pointer != place}
    kept = [item.fault for item in located if not (item.branches and item.fault.pointer in entered)]
    informed = {fault.pointer for fault in kept if not _is_wrong_type(fault)}
    return [fault for fault in kept if not (_is_wrong_type(fault) and fault.pointer in informed)]


def _is_wrong_type(fault: Fault) -> bool:
    return fault.code.endswith("_type")


def _one_per_place(faults: list[Fault]) -> list[Fault]:
    by_pointer: dict[str, list[Fault]] = {}
    for fault in faults:
        by_pointer.setdefault(fault.pointer, []).append(fault)
    return [
        Fault(pointer=place, code=same[0].code, detail="; or: ".join(dict.fromkeys(fault.detail for fault in same)))
        for place, same in by_pointer.items()
    ]
