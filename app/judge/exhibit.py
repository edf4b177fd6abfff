"""Exhibits: texts that are shown beside the units, and may be cited by number."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.domain.request import RunRequest
from app.judge.fence import has_line_break, one_line
from app.judge.segment import Segment, segments_of

CUT = "[...]"


@dataclass(frozen=True, eq=False, slots=True)
class Exhibit:
    """Texts of a request: `mark` begins their lines ("P{}:" with a text's number), `legend` tells what it marks."""

    mark: str
    legend: str
    texts: Callable[[RunRequest, Any], Sequence[str]]


class Piece(NamedTuple):
    """A segment of an exhibit's text, which has this number (from 1); `joint` joins it to the piece before.

    The joint is None where a new line begins, and `is_first` where the text itself does.
    """

    exhibit: Exhibit
    number: int
    segment: Segment
    joint: str | None
    is_first: bool


def pieces_of(exhibit: Exhibit, texts: Sequence[str]) -> list[Piece]:
    """Return the pieces of an exhibit's texts, in order; blank texts have none and keep their number."""
    return [piece for number, text in enumerate(texts, 1) for piece in _pieces(exhibit, number, text)]


def lines_of_pieces(pieces: Iterable[Piece]) -> list[str]:
    """Return the marked lines that show pieces of a page, in which a text that began before is marked as cut."""
    lines: list[str] = []
    for index, piece in enumerate(pieces):
        shown = one_line(piece.segment.text)
        if index and piece.joint is not None:
            lines[-1] += piece.joint + shown
            continue
        cut = f"{CUT} " if index == 0 and not piece.is_first else ""
        lines.append(f"{piece.exhibit.mark.format(piece.number)} {cut}{shown}")
    return lines


def _pieces(exhibit: Exhibit, number: int, text: str) -> Iterator[Piece]:
    end: int | None = None
    for segment in segments_of(text):
        gap = "" if end is None else text[end : segment.start]
        joint = None if end is None or has_line_break(gap) else " "[: len(gap)]
        yield Piece(exhibit, number, segment, joint, end is None)
        end = segment.end


def _context(request: RunRequest, _: Any) -> Sequence[str]:
    return request.context or ()


def _output(request: RunRequest, _: Any) -> Sequence[str]:
    return (request.text,)


def _ground_truth(request: RunRequest, _: Any) -> Sequence[str]:
    return (request.ground_truth or "",)


def _source(request: RunRequest, _: Any) -> Sequence[str]:
    return (request.question or "",)


CONTEXT = Exhibit("P{}:", "P1:, P2: and so on mark the passages of the context", _context)
OUTPUT = Exhibit("A:", "A: marks the answer that was given", _output)
GROUND_TRUTH = Exhibit("G:", "G: marks the reference answer", _ground_truth)
SOURCE = Exhibit("S:", "S: marks the source", _source)
