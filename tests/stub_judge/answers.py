"""Good answers without a model: an instance of the asked JSON schema, chosen by the words of the numbered segments.

The user message holds numbered segments (`[3] Some sentence.`). For every number the stub decides by
words, whatever the language of the rest:

- an opinion: the segment has "always", "never", "every", "best", "worst", "inferior", "should" or "!"
- biased: "inferior" or "superior"; category: "women" or "men" gender, "party" political, "village" geographical
- toxic: "idiot" personal_attack, "clown" mockery, "vermin" hate_speech, "shut up" dismissive, "or else" threat;
  severity: severe with "damned", mild with "silly", else moderate

Arrays of numbers list the segments that hold an opinion; arrays of objects have one item for every number asked (or
what minItems and maxItems pin); a property named by a number is about that segment; enums take the label that the words
call for, else "no", "none" or the first.
"""

import re
from typing import Any

SEGMENT = re.compile(r"^\[(\d{1,6})\] (.*)$", re.MULTILINE)
OPINION = re.compile(r"\b(always|never|every|best|worst|inferior|superior|should)\b|!", re.IGNORECASE)
LABELS: dict[str, re.Pattern[str]] = {
    label: re.compile(words, re.IGNORECASE)
    for label, words in {
        "yes": r"\b(inferior|superior|idiot|clown|vermin|shut up|or else)\b",
        "gender": r"\b(women|men)\b",
        "political": r"\bparty\b",
        "racial_ethnic": r"\btribe\b",
        "geographical": r"\bvillage\b",
        "personal_attack": r"\bidiot\b",
        "mockery": r"\bclown\b",
        "hate_speech": r"\bvermin\b",
        "dismissive": r"\bshut up\b",
        "threat": r"\bor else\b",
        "severe": r"\bdamned\b",
        "mild": r"\bsilly\b",
    }.items()
}
DEFAULT_LABELS = ("no", "none", "moderate", "other")


class Segments:
    """The numbered segments of a user message."""

    def __init__(self, user: str) -> None:
        self.texts = {int(number): text for number, text in SEGMENT.findall(user)}
        self.numbers = list(self.texts)

    def opinions(self) -> list[int]:
        """Return the numbers of the segments that hold an opinion."""
        return [number for number, text in self.texts.items() if OPINION.search(text)]


def instance(schema: dict[str, Any], user: str) -> Any:
    """Return a JSON value that satisfies schema, chosen by the words in user."""
    return _Writer(schema, Segments(user)).value(schema, "")


class _Writer:
    def __init__(self, root: dict[str, Any], segments: Segments) -> None:
        self.root = root
        self.segments = segments

    def value(self, schema: dict[str, Any], text: str, number: int | None = None) -> Any:
        schema = self.resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.label(schema["enum"], text, number)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = kind[0]
        if kind == "object" or "properties" in schema:
            return {name: self.member(name, part, text, number) for name, part in schema.get("properties", {}).items()}
        if kind == "array":
            return self.items(schema)
        if kind == "string":
            return self.words(schema, text)
        if kind in {"integer", "number"}:
            return number if number is not None else schema.get("minimum", 0)
        if kind == "boolean":
            return bool(LABELS["yes"].search(text))
        return None

    def member(self, name: str, part: dict[str, Any], text: str, number: int | None) -> Any:
        return self.item(part, int(name)) if name.isdecimal() else self.value(part, text, number)

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while True:
            if "$ref" in schema:
                target: Any = self.root
                for key in schema["$ref"].removeprefix("#/").split("/"):
                    target = target[key]
                schema = target
            elif "anyOf" in schema or "oneOf" in schema:
                schema = (schema.get("anyOf") or schema["oneOf"])[0]
            else:
                return schema

    def label(self, labels: list[Any], text: str, number: int | None) -> Any:
        if number is not None and number in labels:
            return number
        for label in labels:
            rule = LABELS.get(label) if isinstance(label, str) else None
            if rule is not None and rule.search(text):
                return label
        return next((label for label in DEFAULT_LABELS if label in labels), labels[0])

    def items(self, schema: dict[str, Any]) -> list[Any]:
        if "prefixItems" in schema:
            return [self.item(part, number) for part, number in self.numbered(schema["prefixItems"])]
        part = self.resolved(schema.get("items", {}))
        least, most = schema.get("minItems", 0), schema.get("maxItems", 1_000_000)
        numbers = self.segments.numbers if part.get("type") == "object" else self.segments.opinions()
        if len(numbers) < least:
            numbers = numbers + [n for n in self.segments.numbers if n not in numbers]
        numbers = numbers[:most] + list(range(1, 1 + least - min(len(numbers), most)))
        return [self.item(part, number) for number in numbers]

    def numbered(self, parts: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
        numbers = self.segments.numbers
        return [(part, numbers[i] if i < len(numbers) else i + 1) for i, part in enumerate(parts)]

    def item(self, part: dict[str, Any], number: int) -> Any:
        return self.value(part, self.segments.texts.get(number, ""), number)

    def words(self, schema: dict[str, Any], text: str) -> str:
        said = f"The words of “{text[:40]}” decide." if text else "The words of the text decide."
        return said[: schema.get("maxLength", 1_000)]
