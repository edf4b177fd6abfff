"""Good answers without a model: an instance of the asked JSON schema, chosen by the words of the numbered segments.

The user message holds numbered segments (`[3] Some sentence.`). For every one of them the stub decides by words,
whatever the language of the rest; below are all of them:

- an opinion ("fair" where labels are asked, else "fact"): "always", "never", "every", "best", "should" and so on
- biased: "inferior" or "superior"; its category: "women" gender, "party" political, "village" geographical, else other
- toxic: "idiot" personal_attack, "clown" mockery, "vermin" hate_speech, "hush" dismissive, "beware" threat;
  severity: severe with "damned", mild with "silly", else moderate

Arrays of numbers list the segments that hold an opinion; arrays of objects have one item for every number asked (or
what minItems and maxItems pin); a property named by a number is about that segment; enums take the first label that
the words call for, else "no", "none" or the first.
"""

import re
from typing import Any

SEGMENT = re.compile(r"^\[(\d{1,6})\] (.*)$", re.MULTILINE)
WORD = re.compile(r"\w+")

OPINION = frozenset(
    {"always", "never", "every", "everybody", "nobody", "best", "worst", "should", "inferior", "superior"}
)
BIASED = frozenset({"inferior", "superior"})
CATEGORIES = {"women": "gender", "party": "political", "tribe": "racial_ethnic", "village": "geographical"}
ELEMENTS = {
    "idiot": "personal_attack",
    "clown": "mockery",
    "vermin": "hate_speech",
    "hush": "dismissive",
    "beware": "threat",
}
SEVERITIES = {"damned": "severe", "silly": "mild"}
NOTHING_FOUND = ("no", "none")


class Said:
    """A piece of text, whether it is an opinion, and the labels that its words call for."""

    __slots__ = ("labels", "opinion", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        words = frozenset(WORD.findall(text.lower()))
        self.opinion = not words.isdisjoint(OPINION)
        self.labels = {"fair" if self.opinion else "fact"}
        if not words.isdisjoint(BIASED):
            self.labels = {"yes", *(CATEGORIES[word] for word in words & CATEGORIES.keys())}
            if len(self.labels) == 1:
                self.labels.add("other")
        if elements := [ELEMENTS[word] for word in words & ELEMENTS.keys()]:
            severity = next((SEVERITIES[word] for word in words & SEVERITIES.keys()), "moderate")
            self.labels |= {severity, *elements, *(f"{element}_{severity}" for element in elements)}


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
        return "yes" in said.labels if kind == "boolean" else schema.get("const")

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
        return [number for number, said in self.segments.items() if said.opinion]

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
    called_for = (name for name in labels if name in said.labels)
    nothing_found = (name for name in NOTHING_FOUND if name in labels)
    return next(called_for, next(nothing_found, labels[0]))


def reason(said: Said) -> str:
    """Return words that tell which segment they are about."""
    return f"The words of “{said.text[:40]}” decide." if said.text else "The words of the text decide."
