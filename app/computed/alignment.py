"""Align two sequences of words: what was changed between them, in bounded time and memory.

Levenshtein's distance needs time in proportion to the product of the lengths. Where that is too much, the sequences
are first cut into passages at words that their own content chooses, so that an insertion moves no other cut; passages
are aligned instead of words, and only what differs between two equal passages is aligned word by word.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple
from zlib import crc32

from rapidfuzz.distance import Levenshtein

CELLS: Final = 40_000_000
"""The largest product of lengths that is aligned in one call, about 20 ms in which no other Python code runs."""
_HASH_BITS: Final = 32


class Change(NamedTuple):
    """A place where `before` words became `after` words; one of both may be 0."""

    before: int
    after: int


class Alignment(NamedTuple):
    """How many words there were and are, and what was changed, in order.

    `exact` unless passages were aligned, which may miss the shortest way.
    """

    before: int
    after: int
    changes: list[Change]
    exact: bool


class _Block(NamedTuple):
    """A pair of ranges, equal or not."""

    equal: bool
    before: range
    after: range


def aligned(before: Iterable[str], after: Iterable[str]) -> Alignment:
    """Return how one sequence of words became another."""
    numbers: dict[str, int] = {}
    left = [numbers.setdefault(word, len(numbers)) for word in before]
    right = [numbers.setdefault(word, len(numbers)) for word in after]
    if len(left) * len(right) <= CELLS:
        return Alignment(len(left), len(right), list(_changes(_blocks(left, right))), exact=True)
    blocks = _through_passages(left, right, list(map(_hash_of, numbers)))
    return Alignment(len(left), len(right), list(_changes(blocks)), exact=False)


def _hash_of(word: str) -> int:
    # Never 0, so that with all bits counted there is no place to cut and the search for enough of them ends.
    return crc32(word.encode()) or 1


def _through_passages(left: list[int], right: list[int], hashes: list[int]) -> Iterator[_Block]:
    left_cuts, right_cuts = _cuts(left, right, hashes)
    numbers: dict[tuple[int, ...], int] = {}
    left_passages = [numbers.setdefault(tuple(left[a:b]), len(numbers)) for a, b in pairwise(left_cuts)]
    right_passages = [numbers.setdefault(tuple(right[a:b]), len(numbers)) for a, b in pairwise(right_cuts)]
    for block in _merged_blocks(_blocks(left_passages, right_passages)):
        before = range(left_cuts[block.before.start], left_cuts[block.before.stop])
        after = range(right_cuts[block.after.start], right_cuts[block.after.stop])
        if block.equal or len(before) * len(after) > CELLS:
            yield _Block(block.equal, before, after)
        else:
            yield from _blocks(left[before.start : before.stop], right[after.start : after.stop])


def _cuts(left: list[int], right: list[int], hashes: list[int]) -> tuple[list[int], list[int]]:
    """Return where to cut: after words whose hash ends in so many zeros that few enough passages are left."""
    masks = ((1 << bits) - 1 for bits in range(1, _HASH_BITS + 1))
    tried = ((_cuts_at(left, hashes, mask), _cuts_at(right, hashes, mask)) for mask in masks)
    return next(cuts for cuts in tried if len(cuts[0]) * len(cuts[1]) <= CELLS)


def _cuts_at(words: list[int], hashes: list[int], mask: int) -> list[int]:
    inner = [place for place, word in enumerate(words[:-1], 1) if not hashes[word] & mask]
    return [0, *inner, len(words)]


def _blocks(left: Sequence[int], right: Sequence[int]) -> Iterator[_Block]:
    for step in Levenshtein.opcodes(left, right):
        before, after = range(step.src_start, step.src_end), range(step.dest_start, step.dest_end)
        yield _Block(step.tag == "equal", before, after)


def _merged_blocks(blocks: Iterable[_Block]) -> Iterator[_Block]:
    """Join neighbours that are both changed, or both equal."""
    for equal, group in groupby(blocks, lambda block: block.equal):
        first, *others = group
        last = others[-1] if others else first
        before = range(first.before.start, last.before.stop)
        yield _Block(equal, before, range(first.after.start, last.after.stop))


def _changes(blocks: Iterable[_Block]) -> Iterator[Change]:
    for equal, group in groupby(blocks, lambda block: block.equal):
        if not equal:
            sizes = [(len(block.before), len(block.after)) for block in group]
            yield Change(*map(sum, zip(*sizes, strict=True)))
