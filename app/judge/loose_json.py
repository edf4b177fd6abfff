"""Read JSON as language models write it, without guessing at values.

Accepted beside JSON: comments, trailing commas, single or typographic quotes, raw newlines and unescaped quotes in
strings, bare words as keys and labels, Python's True, False and None. Never accepted, unlike by the usual repair
libraries: a document that ends too soon (its values could be half of themselves) and a key given twice with different
values. NaN and infinities are read as null. One pass, linear time, bounded depth.
"""

import json
import re
from typing import Any, Self

MAX_DEPTH = 16

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*(?:[^*]|\*(?!/)){0,2000}\*/|#[^\n]*)*")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[+-]?\d{1,17}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_QUOTES = {'"': '"', "'": "'", "“": "”"}
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None, "nan": None, "infinity": None, "inf": None}
# A quote ends its string only when what follows can follow a string; a quotation inside the string seldom looks so.
_AFTER_STRING = re.compile(
    r"\s*(?:\Z|[:}\]]|//|/\*|#|,\s*(?:\Z|[\"'“{\[}\]\d-]|//|/\*|#|(?:true|false|null|True|False|None)\b|[^\W\d]\w*\s*:))"
)


class Placed(str):
    """A string value that knows where in the text it begins, behind its opening quote."""

    __slots__ = ("at",)
    at: int

    def __new__(cls, value: str, at: int) -> Self:
        """Return value with its place."""
        placed = super().__new__(cls, value)
        placed.at = at
        return placed


class NotJson(ValueError):
    """What stands here is no document."""


class CutShort(NotJson):
    """The text ended before the document did."""


class Contradiction(NotJson):
    """The document gives a key twice, with different values."""


def loads(text: str) -> Any:
    """Read a text that is one strict JSON document (raw newlines in strings aside); raises NotJson.

    Keys come back in lower case without surrounding spaces, in all objects.
    """
    try:
        return json.loads(text, strict=False, object_pairs_hook=_object, parse_constant=_no_number)
    except Contradiction:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJson("not a JSON document") from error


def read_at(text: str, at: int) -> tuple[Any, int]:
    """Read the object or array that begins at text[at] and return it with its end; raises NotJson.

    Its strings are Placed.
    """
    return _Reader(text).value(at, MAX_DEPTH)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().casefold()
        if name in document and document[name] != value:
            raise Contradiction("a key has two values")
        document[name] = value
    return document


def _no_number(_: str) -> None:
    return None


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        opening = self.peek(at)
        if opening == "{":
            return self.object(at + 1, self.deeper(depth))
        if opening == "[":
            return self.array(at + 1, self.deeper(depth))
        if opening in _QUOTES:
            string, end = self.string(at, _AFTER_STRING)
            return Placed(string, at + 1), end
        if number := _NUMBER.match(self.text, at):
            return self.number(number.group()), number.end()
        word, end = self.word(at)
        return _CONSTANTS.get(word.casefold(), Placed(word, at)), end

    def object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        pairs: list[tuple[str, Any]] = []
        at = self.space(at)
        while self.peek(at) != "}":
            key, at = self.string(at) if self.peek(at) in _QUOTES else self.word(at)
            at = self.space(self.expect(":", self.space(at)))
            value, at = self.value(at, depth)
            pairs.append((key, value))
            at = self.next_item(at, "}")
        return _object(pairs), at + 1

    def array(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self.space(at)
        while self.peek(at) != "]":
            item, at = self.value(at, depth)
            items.append(item)
            at = self.next_item(at, "]")
        return items, at + 1

    def string(self, at: int, followed_by: re.Pattern[str] | None = None) -> tuple[str, int]:
        closing = _QUOTES[self.text[at]]
        at = begin = at + 1
        while True:
            end = self.text.find(closing, at)
            if end < 0:
                raise CutShort("a string does not end")
            at = end + 1
            if not self.escaped(begin, end) and (followed_by is None or followed_by.match(self.text, at)):
                return _ESCAPE.sub(_unescaped, self.text[begin:end]), at

    def escaped(self, begin: int, at: int) -> bool:
        backslashes = at
        while backslashes > begin and self.text[backslashes - 1] == "\\":
            backslashes -= 1
        return (at - backslashes) % 2 == 1

    def word(self, at: int) -> tuple[str, int]:
        word = _WORD.match(self.text, at)
        if word is None:
            raise NotJson("neither a value nor a key")
        return word.group(), word.end()

    def next_item(self, at: int, closing: str) -> int:
        at = self.space(at)
        if self.peek(at) == closing:
            return at
        return self.space(self.expect(",", at))

    def expect(self, character: str, at: int) -> int:
        if self.peek(at) != character:
            raise NotJson("another sign was expected")
        return at + 1

    def peek(self, at: int) -> str:
        if at >= len(self.text):
            raise CutShort("the document does not end")
        return self.text[at]

    def space(self, at: int) -> int:
        space = _SPACE.match(self.text, at)
        return space.end() if space else at

    @staticmethod
    def number(digits: str) -> int | float:
        return float(digits) if any(mark in digits for mark in ".eE") else int(digits)

    @staticmethod
    def deeper(depth: int) -> int:
        if depth == 0:
            raise NotJson("nested too deeply")
        return depth - 1


def _unescaped(escape: re.Match[str]) -> str:
    digits, character = escape.groups()
    return chr(int(digits, 16)) if digits else _ESCAPED.get(character, character)
