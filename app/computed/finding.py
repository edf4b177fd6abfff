"""Find a text in another one whatever the Unicode forms, and say where it stands in the original."""

import unicodedata
from array import array
from bisect import bisect_right

from icu4py.breakers import CharacterBreaker

from app.domain.run import Span


class Searched:
    """A text that is searched, in normal form C and with ignore_case without regard to case."""

    def __init__(self, text: str, *, ignore_case: bool) -> None:
        self._text = text
        self._ignore_case = ignore_case
        self._normal = self.normal(text)
        self._starts: tuple[array[int], array[int]] | None = None

    def normal(self, text: str) -> str:
        """Return text in the form in which it is compared."""
        composed = unicodedata.normalize("NFC", text)
        return unicodedata.normalize("NFC", composed.casefold()) if self._ignore_case else composed

    def equals(self, other: str) -> bool:
        """Whether it is the other text, but for whitespace around."""
        return self._normal.strip() == self.normal(other).strip()

    def span_of(self, wanted: str) -> Span | None:
        """Return where wanted first stands in the original, in whole characters; None when it does not."""
        place = self._normal.find(self.normal(wanted))
        if place < 0:
            return None
        last = max(place + len(self.normal(wanted)) - 1, place)
        if self._normal == self._text:
            return Span(start=place, end=last + 1)
        ours, originals = self._characters()
        first_character, last_character = bisect_right(ours, place) - 1, bisect_right(ours, last) - 1
        return Span(start=originals[first_character], end=originals[last_character + 1])

    def _characters(self) -> "tuple[array[int], array[int]]":
        """Return where characters, as readers see them, begin in the normal form and in the original; made once."""
        if self._starts is None:
            ours, originals = array("I", [0]), array("I", [0])
            # Not its `segments()`, which counts UTF-16 units.
            for character in CharacterBreaker(self._text, "en"):
                ours.append(ours[-1] + len(self.normal(character)))
                originals.append(originals[-1] + len(character))
            self._starts = ours, originals
        return self._starts
