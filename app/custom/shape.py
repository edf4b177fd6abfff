"""The JSON schemas that definitions may use: what strict modes of providers take, and what a formula can be typed by.

Every property is required and no other is allowed, so that a reply either has the shape or is asked for again. There
are no references, patterns, unions or nulls. Lengths are always limited: decoders that know the limit keep weak models
from repeating themselves, and calls can be planned by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from app.judge.reply_schema import object_of

TEXT_LENGTH: Final = 400
"""Code points of a text whose schema sets no limit."""
LIST_LENGTH: Final = 20
"""Items of an array whose schema sets no limit."""
MAX_NUMBER: Final = 999_999_999
"""How far from 0 numbers may lie."""

_PER_TEXT_TOKENS: Final = 400
_PER_VALUE_TOKENS: Final = 12
_COUNTED_ITEMS: Final = 10

Kind = Literal["object", "array", "text", "label", "number", "integer", "boolean"]


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """One place of a schema.

    `properties` of an object; `items` of an array, from `least` to `most` of them; `labels` of a label; `most` code
    points of a text; `low` and `high` bound a number, both ends included. `default` is what an option is when it is
    not given (None: it has to be given).
    """

    kind: Kind
    description: str | None = None
    properties: Mapping[str, "Shape"] = field(default_factory=dict)
    items: "Shape | None" = None
    labels: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    low: float | None = None
    high: float | None = None
    default: Any = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema that the judge is sent."""
        told = {} if self.description is None else {"description": self.description}
        match self.kind:
            case "object":
                return told | object_of({name: shape.schema() for name, shape in self.properties.items()})
            case "array":
                counts = ({"minItems": self.least} if self.least else {}) | {"maxItems": self.most}
                return told | {"type": "array", "items": self.item.schema(), **counts}
            case "label":
                return told | {"type": "string", "enum": list(self.labels)}
            case "text":
                return told | {"type": "string", "maxLength": self.most}
        ends = {"minimum": self.low, "maximum": self.high}
        return told | {"type": self.kind} | {name: end for name, end in ends.items() if end is not None}

    @property
    def item(self) -> "Shape":
        """The shape of an array's items."""
        assert self.items is not None, "only arrays have items"  # noqa: S101 - a bug of ours, never a definition's
        return self.items

    @property
    def tokens(self) -> int:
        """How many tokens a good reply of this shape takes, seldom more."""
        match self.kind:
            case "object":
                return _PER_VALUE_TOKENS + sum(_PER_VALUE_TOKENS + shape.tokens for shape in self.properties.values())
            case "array":
                return _PER_VALUE_TOKENS + min(self.most, _COUNTED_ITEMS) * self.item.tokens
            case "text":
                return min(self.most // 2, _PER_TEXT_TOKENS) + _PER_VALUE_TOKENS
        return _PER_VALUE_TOKENS

    @property
    def free_texts(self) -> frozenset[str]:
        """The names of properties that hold texts of the judge's own, at any depth: they may quote what was judged."""
        own = {name for name, shape in self.properties.items() if shape.is_text}
        inner = [*self.properties.values(), *([self.items] if self.items else [])]
        return frozenset(own).union(*(shape.free_texts for shape in inner))

    @property
    def is_text(self) -> bool:
        """Whether it is a text, or a list of texts."""
        return self.kind == "text" or (self.items is not None and self.items.is_text)
