"""Segments of a text, by code point spans."""

from typing import NamedTuple


class Segment(NamedTuple):
    """A verbatim piece of the scored text: `text` is `scored[start:end]`, in Unicode code points."""

    start: int
    end: int
    text: str
