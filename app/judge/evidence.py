"""What the judge is shown of a run: numbered segments inside the fence, in windows that fit the model."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from app.domain.errors import ContextOverflow
from app.judge.fence import Fence, lines_of, one_line
from app.judge.segment import Segment
from app.judge.tokens import token_bound

_BEFORE, _AFTER = 2, 1
_LINE_OVERHEAD = 16  # the number or mark, the line break, and a "- [...]" where segments are left out


class Window(NamedTuple):
    """Segments (by index) that are asked about together, numbered from 1, and whether their neighbours are shown."""

    items: tuple[int, ...]
    neighbours: bool

    @property
    def numbers(self) -> range:
        """The numbers of its items."""
        return range(1, len(self.items) + 1)


class Room(NamedTuple):
    """What one call has room for: tokens of shown lines and of reply together, reply tokens an item, items."""

    tokens: int
    per_item: int
    items: int


class Evidence:
    """The segments of one text and the question it answers."""

    def __init__(self, fence: Fence, segments: Sequence[Segment], question: str | None) -> None:
        self.fence = fence
        self.segments = segments
        self.question = [f"? {line}" for line in lines_of(question or "")]
        self._shown = cache(lambda index: one_line(segments[index].text))
        self._cost = cache(lambda index: token_bound(self._shown(index)) + _LINE_OVERHEAD)

    def show(self, window: Window, numbers: Iterable[int]) -> str:
        """Return the fenced lines of a window's items with these numbers; the question and neighbours have none."""
        asked = {window.items[number - 1]: number for number in numbers}
        lines = list(self.question)
        previous = None
        for index in sorted({shown for item in asked for shown in self._around(item, window.neighbours)}):
            if previous is not None and index > previous + 1:
                lines.append("- [...]")
            mark = f"[{asked[index]}]" if index in asked else "-"
            lines.append(f"{mark} {self._shown(index)}")
            previous = index
        return self.fence.around(lines)

    def windows(self, items: Sequence[int], room: Room) -> list[Window]:
        """Cut items (segment indexes, in order) into as few windows as the room allows, in order.

        Raises ContextOverflow when a single item does not fit.
        """
        windows: list[Window] = []
        begin = 0
        while begin < len(items):
            candidates = items[begin : begin + room.items]
            neighbours = True
            count = self._fitting(candidates, room, neighbours)
            if count == 0:
                neighbours = False
                count = self._fitting(candidates, room, neighbours)
            if count == 0:
                raise ContextOverflow(
                    "Not even one segment fits the judge model's context beside the instructions and the input; "
                    "use a model with a larger context, or send less input"
                )
            windows.append(Window(tuple(candidates[:count]), neighbours))
            begin += count
        return windows

    def _fitting(self, items: Sequence[int], room: Room, neighbours: bool) -> int:
        shown: set[int] = set()
        tokens = 0
        for count, item in enumerate(items):
            fresh = self._around(item, neighbours) - shown
            tokens += room.per_item + sum(self._cost(index) for index in fresh)
            if tokens > room.tokens:
                return count
            shown |= fresh
        return len(items)

    def _around(self, item: int, neighbours: bool) -> set[int]:
        if not neighbours:
            return {item}
        return set(range(max(0, item - _BEFORE), min(len(self.segments), item + _AFTER + 1)))
