"""What a scorer judges: the units of one text, or of a list of texts."""

import json
from collections.abc import Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

from app.domain.request import RunRequest
from app.judge.segment import NOTHING_KNOWN, Segment, segments_of


class Subject(NamedTuple):
    """Units to judge: the text they stand in, the units themselves, and which of them (indexes) are asked about.

    A claim is a unit too: its `text` is the claim, its span the segment's that it was taken from. `decided` are the
    labels of units on which code decides: no judge is asked about them, and they count like the others.
    """

    text: str
    units: Sequence[Segment]
    items: Sequence[int]
    decided: Mapping[int, Mapping[str, str]] = MappingProxyType({})


def segments(text: str) -> Subject:
    """Return the segments of a text as a subject."""
    units = segments_of(text)
    return Subject(text, units, range(len(units)))


def listed(texts: Sequence[str], known: Sequence[Mapping[str, Any]] | None = None) -> Subject:
    """Return texts as a subject, each a whole unit in its own place; blank ones keep their place and are not asked.

    `known` has what is known of each.
    """
    units = [Segment(0, len(text), text, one) for text, one in zip(texts, known or repeat(NOTHING_KNOWN), strict=False)]
    return Subject(json.dumps(texts), units, [index for index, unit in enumerate(units) if unit.text.strip()])


def distinct(found: Subject, _: Any = None) -> Subject:
    """Return what was found with equal texts asked about once, where they come first."""
    first = {found.units[index].text: index for index in reversed(found.items)}
    return found._replace(items=sorted(first.values()))


def output_segments(request: RunRequest, _: Any) -> Subject:
    """Return the segments of the output."""
    return segments(request.text)


def ground_truth_segments(request: RunRequest, _: Any) -> Subject:
    """Return the segments of the ground truth."""
    return segments(request.ground_truth or "")


def input_segments(request: RunRequest, _: Any) -> Subject:
    """Return the segments of the input."""
    return segments(request.question or "")


def context_passages(request: RunRequest, _: Any) -> Subject:
    """Return the passages of the context, each as a unit."""
    return listed(request.context or ())
