"""Cut a text into numbered segments: sentences, list items and lines, by code point spans.

sentencex finds the sentence ends; its English rules know most titles and initials of other languages too, so the
language need not be known. Three things it gets wrong are put right here: list markers ("1.") that stand alone, words
that it takes for abbreviations ("not me. Then"), and a quotation that goes on without a space (「本当？」と彼は言った).
What remains: an ordinal before a capital ("am 3. Mai") is taken for the end of a sentence. That only makes smaller
segments; no text is lost or doubled.
"""

import re
import unicodedata
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import structlog
from sentencex import get_sentence_boundaries

log = structlog.get_logger()

MAX_SEGMENT = 600
"""Code points; longer sentences are split at whitespace, so that every segment fits a small model's window."""

_CHUNK = 4_000  # sentencex needs quadratic time within a paragraph: it never sees more than this at once
_LOOK_BACK = 64
_INDIGESTIBLE = re.compile(r"[^\S\x00-\x7f]|[\ud800-\udfff]")

_LINE = re.compile(
    r"[•‣◦▪●]*[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029•‣◦▪●]+"  # a line, or the part of one that a bullet begins
    r"|[•‣◦▪●]+"
)
_LIST_MARKER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)]")
_ORDINARY_WORD = re.compile(r"\b(?:May|no|art|miss|ill|me|ok|OK|min|sec|etc)[.]\s+(?=[^\W\d_a-z])")
_CLOSING_QUOTES = "\"'”’»」』）)]"
_OPENING_QUOTES = "\"'“‘«「『（(["

_SHORT = 5_000  # code points, cut in about a millisecond

Bounds = tuple[int, int]
NOTHING_KNOWN: Mapping[str, Any] = MappingProxyType({})


class Segment(NamedTuple):
    """A verbatim piece of the scored text: `text` is `scored[start:end]`, in Unicode code points.

    `known` is what code knows of a unit of a list (the id of a criterion), which the judge is not shown.
    """

    start: int
    end: int
    text: str
    known: Mapping[str, Any] = NOTHING_KNOWN


class Segments(list[Segment]):
    """The segments of one text; runs that need them at the same time have the same ones, and nobody changes them."""


_in_use: WeakValueDictionary[str, Segments] = WeakValueDictionary()
_cutting = Lock()


def segments_of(text: str) -> Segments:
    """Return the segments of text, in order; cut once for all who hold them at the same time.

    They never overlap, none is blank or begins or ends with whitespace, and together they hold every code point that
    is not whitespace. None is longer than MAX_SEGMENT code points.
    """
    # Who needs a long text waits for another thread that cuts it; the event loop only ever asks for short ones.
    if len(text) <= _SHORT:
        return _shared(text)
    with _cutting:
        return _shared(text)


def _shared(text: str) -> Segments:
    segments = _in_use.get(text)
    if segments is None:
        segments = _in_use[text] = Segments(_segments(text))
    return segments


def _segments(text: str) -> Iterator[Segment]:
    for line in _LINE.finditer(text):
        for bounds in _joined(text, list(_sentences(text, line.start(), line.end()))):
            for start, end in _pieces(text, *bounds):
                yield Segment(start, end, text[start:end])


def _sentences(text: str, begin: int, end: int) -> Iterator[Bounds]:
    while begin < end:
        chunk = text[begin : min(begin + _CHUNK, end)]
        ends = [begin + sentence_end for sentence_end in _sentence_ends(chunk)]
        if begin + len(chunk) < end:
            # The last sentence may go on behind the chunk.
            ends = ends[:-1] or [_break_point(text, begin, begin + len(chunk))]
        ends += [word.end() for word in _ORDINARY_WORD.finditer(text, begin, ends[-1])]
        for stop in sorted(set(ends)):
            yield begin, stop
            begin = stop


def _sentence_ends(chunk: str) -> list[int]:
    # sentencex 1.0 panics at a full stop after a capital and a space of more than one byte ("B\u00a0."), and can't
    # take halves of surrogate pairs.
    plain = _INDIGESTIBLE.sub(" ", chunk)
    try:
        return [sentence["end_index"] for sentence in get_sentence_boundaries("en", plain)]
    except (CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in Rust code is no Exception
        # One text must not end its run, or its worker, for the library's sake: the line goes unsplit.
        log.warning("sentences_not_found", error=type(error).__name__)
        return [len(chunk)]


def _joined(text: str, sentences: list[Bounds]) -> list[Bounds]:
    joined: list[Bounds] = []
    for begin, end in sentences:
        first, last = joined[-1] if joined else (begin, begin)
        if first < last <= first + MAX_SEGMENT and _belong_together(text[first:last], text[begin:end]):
            joined[-1] = (first, end)
        else:
            joined.append((begin, end))
    return joined


def _belong_together(before: str, after: str) -> bool:
    if _LIST_MARKER.fullmatch(before.strip()) or not _says_something(before) or not _says_something(after):
        return True
    quotation_goes_on = before[-1] in _CLOSING_QUOTES and after[0] not in _OPENING_QUOTES
    return quotation_goes_on and not after[0].isspace()


def _says_something(piece: str) -> bool:
    return any(character.isalnum() for character in piece)


def _pieces(text: str, begin: int, end: int) -> Iterator[Bounds]:
    """Trim whitespace and split what is too long."""
    while True:
        piece = text[begin:end]
        begin += len(piece) - len(piece.lstrip())
        stop = begin + len(piece.strip())
        if begin >= stop:
            return
        if stop - begin <= MAX_SEGMENT:
            yield begin, stop
            return
        cut = _break_point(text, begin, begin + MAX_SEGMENT)
        yield begin, begin + len(text[begin:cut].rstrip())
        begin = cut


def _break_point(text: str, begin: int, limit: int) -> int:
    """Return where to cut text between begin and limit: after the last whitespace, else not inside a character."""
    for cut in range(limit, begin + (limit - begin) // 2, -1):
        if text[cut - 1].isspace():
            return cut
    for cut in range(limit, max(begin, limit - _LOOK_BACK), -1):
        if not _continues(text[cut - 1], text[cut]):
            return cut
    return limit


def _continues(before: str, character: str) -> bool:
    """Whether a reader would see both code points as parts of one character."""
    return (
        before == "\u200d"
        or character in "\u200c\u200d"
        or unicodedata.category(character).startswith("M")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or ("\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= character <= "\U0001f1ff")
    )
