"""JSON schemas of judge replies: labels and counts pinned, in the subset that strict modes of providers take.

Every property is required and no other is allowed. Items are numbered from 1 in each window, so that schemas depend on
the count alone, re-asks aside, and a provider compiles few of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

REASON_LENGTH = 200
EXPLANATION_LENGTH = 700
STATEMENT_LENGTH = 240
MOST_STATEMENTS = 8
MOST_CITED = 8
MOST_ENUMERATED = 50
"""More numbers than these are not listed in a schema: providers limit lists, and each number costs tokens."""

Schema = dict[str, Any]


def object_of(properties: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def text_up_to(length: int) -> Schema:
    """Return the schema of a text; decoders that know the limit keep weak models from repeating themselves."""
    return {"type": "string", "maxLength": length}


def some_of(numbers: Sequence[int]) -> Schema:
    """Return the schema of a choice among these items, perhaps none."""
    return {"type": "array", "items": {"type": "integer", "enum": list(numbers)}, "maxItems": len(numbers)}


def verdict_list(numbers: Sequence[int], fields: Mapping[str, tuple[str, ...]], cited: Sequence[int] = ()) -> Schema:
    """Return the schema of exactly one verdict an item: its number, the reason, then a label for every field.

    Where there are numbers that may be cited, those that the verdict rests on come before the reason.
    """
    verdict = object_of(
        {
            "n": {"type": "integer", "enum": list(numbers)},
            **({"passages": _cited(cited)} if cited else {}),
            "reason": text_up_to(REASON_LENGTH),
            **{field: _one_of(labels) for field, labels in fields.items()},
        }
    )
    return {"type": "array", "items": verdict, "minItems": len(numbers), "maxItems": len(numbers)}


def _cited(numbers: Sequence[int]) -> Schema:
    number = {"type": "integer"} | ({"enum": list(numbers)} if len(numbers) <= MOST_ENUMERATED else {})
    return {"type": "array", "items": number, "maxItems": min(len(numbers), MOST_CITED)}


def statement_lists(numbers: Sequence[int], key: str) -> Schema:
    """Return the schema of exactly one list of short texts an item, beside its number; a list may be empty."""
    statements = {"type": "array", "items": text_up_to(STATEMENT_LENGTH), "maxItems": MOST_STATEMENTS}
    entry = object_of({"n": {"type": "integer", "enum": list(numbers)}, key: statements})
    return {"type": "array", "items": entry, "minItems": len(numbers), "maxItems": len(numbers)}


def label_map(numbers: Sequence[int], labels: tuple[str, ...]) -> tuple[Schema, Schema]:
    """Return the schema of an object from every item's number to its label, and the definitions that it refers to.

    The shortest form there is: half of the tokens of a list, and no number can be missing or given twice.
    """
    return object_of({str(n): {"$ref": "#/$defs/label"} for n in numbers}), {"label": _one_of(labels)}


def _one_of(labels: tuple[str, ...]) -> Schema:
    return {"type": "string", "enum": list(labels)}
