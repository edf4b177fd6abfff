"""Good answers without a model: an instance of the asked JSON schema, chosen by the words of the numbered segments.

The user message holds numbered segments (`[3] Some sentence.`). For every number the stub decides by
words, whatever the language of the rest; see WORDS for all of them:

- an opinion: the segment has "always", "never", "every", "best", "worst", "inferior", "should" and so on
- biased: "inferior" or "superior"; category: "women" gender, "party" political, "village" geographical
- toxic: "idiot" personal_attack, "clown" mockery, "vermin" hate_speech, "hush" dismissive, "beware" threat;
  severity: severe with "damned", mild with "silly", else moderate

Arrays of numbers list the segments that hold an opinion; arrays of objects have one item for every number asked (or
what minItems and maxItems pin); a property named by a number is about that segment; enums take the label that the words
call for, else "no", "none" or the first.
"""

import re
from typing import Any

SEGMENT = re.compile(r"^\[(\d{1,6})\] (.*)$", re.MULTILINE)
WORD = re.compile(r"\w+")

OPINION = frozenset(
    {"always", "never", "every", "everybody", "nobody", "best", "worst", "should", "inferior", "superior"}
)
BIASED = frozenset({"inferior", "superior"})
TOXIC = {
    "personal_attack": frozenset({"idiot"}),
    "mockery": frozenset({"clown"}),
    "hate_speech": frozenset({"vermin"}),
    "dismissive": frozenset({"hush"}),
    "threat": frozenset({"beware"}),
}
WORDS: dict[str, frozenset[str]] = TOXIC | {
    "yes": BIASED.union(*TOXIC.values()),
    "gender": frozenset({"women", "men"}),
    "political": frozenset({"party"}),
    "racial_ethnic": frozenset({"tribe"}),
    "geographical": frozenset({"village"}),
    "severe": frozenset({"damned"}),
    "mild": frozenset({"silly"}),
}
DEFAULT_LABELS = ("no", "none", "moderate", "other")


class Said:
    """A piece of text and its words."""

    __slots__ = ("text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = frozenset(WORD.findall(text.lower()))


NOTHING = Said("")


def instance(schema: dict[str, Any], user: str) -> Any:
    """Return a JSON value that satisfies schema, chosen by the words in user."""
    segments = {int(number): Said(text) for number, text in SEGMENT.findall(user)}
    return _Writer(schema, segments).value(schema, NOTHING, None)


class _Writer:
    def __init__(self, root: dict[str, Any], segments: dict[int, Said]) -> None:
        self.root = root
        self.segments = segments

    def value(self, schema: dict[str, Any], said: Said, number: int | None) -> Any:
        """Return a value for a part of the schema that is about this segment."""
        if "type" not in schema:
            schema = self.resolved(schema)
        if "enum" in schema:
            return number if number in schema["enum"] else label(schema["enum"], said)
        kind = schema.get("type")
        if kind == "object":
            return {name: self.member(name, part, said, number) for name, part in schema.get("properties", {}).items()}
        if kind == "array":
            return self.items(schema)
        if kind == "string":
            return reason(said)[: schema.get("maxLength", 1_000)]
        if kind in {"integer", "number"}:
            return number if number is not None else schema.get("minimum", 0)
        return not said.words.isdisjoint(WORDS["yes"]) if kind == "boolean" else schema.get("const")

    def member(self, name: str, part: dict[str, Any], said: Said, number: int | None) -> Any:
        return self.item(part, int(name)) if name.isdecimal() else self.value(part, said, number)

    def item(self, part: dict[str, Any], number: int) -> Any:
        return self.value(part, self.segments.get(number, NOTHING), number)

    def items(self, schema: dict[str, Any]) -> list[Any]:
        part = self.resolved(schema.get("items", {}))
        numbers = list(self.segments) if part.get("type") == "object" else self.opinions()
        least, most = schema.get("minItems", 0), schema.get("maxItems", len(numbers))
        numbers += [number for number in range(1, least + 1) if number not in numbers]
        return [self.item(part, number) for number in numbers[: max(least, most)]]

    def opinions(self) -> list[int]:
        return [number for number, said in self.segments.items() if not said.words.isdisjoint(OPINION)]

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema or "anyOf" in schema:
            if "anyOf" in schema:
                schema = schema["anyOf"][0]
                continue
            target: Any = self.root
            for key in schema["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            schema = target
        return schema


def label(labels: list[Any], said: Said) -> Any:
    """Return the label that the words call for, or the one for nothing found."""
    for name in labels:
        if not said.words.isdisjoint(WORDS.get(name, ())):
            return name
    return next((name for name in DEFAULT_LABELS if name in labels), labels[0])


def reason(said: Said) -> str:
    """Return words that tell which segment they are about."""
    return f"The words of “{said.text[:40]}” decide." if said.text else "The words of the text decide."
