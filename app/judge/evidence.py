"""What the judge is shown of a run: numbered units and exhibits inside the fence, in windows that fit the model."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from app.domain.errors import ContextOverflow
from app.judge.exhibit import OUTPUT, Exhibit, Piece, lines_of_pieces
from app.judge.fence import Fence, lines_of, one_line
from app.judge.segment import Segment
from app.judge.tokens import token_bound

_BEFORE, _AFTER = 2, 1
_LINE_OVERHEAD = (
    16  # the number or mark, the line break, and a "- [...]" where units or the start of a text are left out
)
_SHARE_OF_ITEMS = 4  # exhibits in pieces leave at least one part in so many of a window to the items


class Page(NamedTuple):
    """The pieces of the exhibits, from one index up to another, that are shown together."""

    begin: int = 0
    end: int = 0


class Window(NamedTuple):
    """Units (by index) that are asked about together, numbered from 1, whether their neighbours are shown, and beside
    which page of the exhibits.
    """

    items: tuple[int, ...]
    neighbours: bool
    page: Page = Page()

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
    """The units of one text, the question it answers, and the pieces of the exhibits."""

    def __init__(
        self,
        fence: Fence,
        units: Sequence[Segment],
        question: str | None,
        pieces: Sequence[Piece] = (),
        *,
        neighbours: bool = True,
        piecewise: bool = False,
    ) -> None:
        self.fence = fence
        self.units = units
        self.question = [f"? {line}" for line in lines_of(question or "")]
        self._pieces = pieces
        self._neighbours = neighbours
        self._piecewise = piecewise
        self._shown = cache(lambda index: one_line(units[index].text))
        self._cost = cache(lambda index: token_bound(self._shown(index)) + _LINE_OVERHEAD)

    @property
    def whole(self) -> Page:
        """The page that holds all pieces."""
        return Page(0, len(self._pieces))

    @property
    def shows_output(self) -> bool:
        """Whether the output is an exhibit, and the units are something else."""
        return any(piece.exhibit is OUTPUT for piece in self._pieces)

    def cited(self, exhibit: Exhibit | None, page: Page) -> tuple[int, ...]:
        """Return the numbers of the exhibit's texts of which a page shows something."""
        return tuple(dict.fromkeys(p.number for p in self._pieces[page.begin : page.end] if p.exhibit is exhibit))

    def show(self, window: Window, numbers: Iterable[int]) -> str:
        """Return the fenced lines of a window: the question, the page, and the items with these numbers.

        Neighbours have no number. What comes first is the same in many windows, for a provider's prompt cache.
        """
        asked = {window.items[number - 1]: number for number in numbers}
        lines = self.question + lines_of_pieces(self._pieces[window.page.begin : window.page.end])
        previous = None
        for index in sorted({shown for item in asked for shown in self._around(item, window.neighbours)}):
            if previous is not None and index > previous + 1 and self._neighbours:
                lines.append("- [...]")
            mark = f"[{asked[index]}]" if index in asked else "-"
            lines.append(f"{mark} {self._shown(index)}")
            previous = index
        return self.fence.around(lines)

    def windows(self, items: Sequence[int], room: Room) -> list[Window]:
        """Cut items (unit indexes, in order) into as few windows as the room allows, in order, for every page.

        Raises ContextOverflow when a single item, or the exhibits beside one, do not fit.
        """
        return [window for page, left in self._pages(items, room) for window in self._windows(items, left, page)]

    def _pages(self, items: Sequence[int], room: Room) -> list[tuple[Page, Room]]:
        """Cut the exhibits into pages, with the room that each leaves to items; each begins with the end of another."""
        costs = [token_bound(one_line(piece.segment.text)) + _LINE_OVERHEAD for piece in self._pieces]
        item_costs = [room.per_item + self._cost(item) for item in items] if costs else []
        least = max(item_costs, default=0)
        if self._piecewise:
            least = max(least, min(sum(item_costs), room.tokens // _SHARE_OF_ITEMS))
        pages: list[tuple[Page, Room]] = []
        begin = 0
        while begin < len(costs) or not pages:
            end, tokens = begin, 0
            while end < len(costs) and tokens + costs[end] <= room.tokens - least:
                tokens += costs[end]
                end += 1
            if end < len(costs) and (not self._piecewise or end - begin < 2):
                raise ContextOverflow(
                    "The texts to compare with do not fit the judge model's context; use a model with a larger "
                    "context, or send less"
                )
            pages.append((Page(begin, end), room._replace(tokens=room.tokens - tokens)))
            begin = end - 1 if end < len(costs) else end
        return pages

    def _windows(self, items: Sequence[int], room: Room, page: Page) -> list[Window]:
        windows: list[Window] = []
        begin = 0
        while begin < len(items):
            candidates = items[begin : begin + room.items]
            neighbours = self._neighbours
            count = self._fitting(candidates, room, neighbours)
            if count == 0 and neighbours:
                neighbours = False
                count = self._fitting(candidates, room, neighbours)
            if count == 0:
                raise ContextOverflow(
                    "A single segment, claim or passage does not fit the judge model's context beside the instructions "
                    "and the input; use a model with a larger context, or send less"
                )
            windows.append(Window(tuple(candidates[:count]), neighbours, page))
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
        return set(range(max(0, item - _BEFORE), min(len(self.units), item + _AFTER + 1)))
