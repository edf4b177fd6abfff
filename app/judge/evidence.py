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
    """Segments (by index) that one call asks about, and whether their neighbours are shown as context."""

    items: tuple[int, ...]
    neighbours: bool

    def only(self, numbers: Iterable[int]) -> "Window":
        """Return the window that asks only about these of its items, given by their number from 1."""
        return Window(tuple(self.items[number - 1] for number in numbers), self.neighbours)


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

    def show(self, window: Window) -> str:
        """Return the fenced lines of a window: its items numbered from 1, the question and neighbours unnumbered."""
        numbers = {index: number for number, index in enumerate(window.items, 1)}
        lines = list(self.question)
        previous = None
        for index in sorted({shown for item in window.items for shown in self._around(item, window.neighbours)}):
            if previous is not None and index > previous + 1:
                lines.append("- [...]")
            lines.append(f"[{numbers[index]}] {self._shown(index)}" if index in numbers else f"- {self._shown(index)}")
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
