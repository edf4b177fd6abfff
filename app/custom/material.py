"""What a run holds for the instructions: texts that they name, and how each is shown inside the fence."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self

from app.custom.shape import Shape
from app.custom.template import NamedObject, Plain, named
from app.domain.request import MetadataValue
from app.judge.exhibit import Exhibit, Piece, pieces_of

INPUTS: Final = ("output", "input", "context", "groundTruth")
ALWAYS: Final = (*INPUTS, "metadata", "options")

Mentioned = Iterable[tuple[str, str | None]]


class Typed(NamedTuple):
    """A value of a shape."""

    shape: Shape | None
    value: Any


@dataclass(frozen=True, slots=True)
class Material:
    """The variables of a step: inputs by their names (None for those that were not sent), metadata, and typed values.

    `typed` are the options and the step results so far.
    """

    inputs: Mapping[str, Any]
    metadata: Mapping[str, MetadataValue]
    typed: Mapping[str, Typed]

    def with_result(self, name: str, shape: Shape | None, value: Any) -> Self:
        """Return the material of the next step."""
        return replace(self, typed={**self.typed, name: Typed(shape, value)})

    def variables(self) -> dict[str, Any]:
        """Return what a template is given: names, and the values of numbers, booleans and labels."""
        return {
            **{name: named(name, value) for name, value in self.inputs.items()},
            "metadata": NamedObject("metadata", self.metadata, is_open=True),
            **{name: named(name, _with_labels(*typed)) for name, typed in self.typed.items()},
        }

    def pieces(self, mentioned: Mentioned) -> list[Piece]:
        """Return the pieces that show what was mentioned, each line under its name; of metadata the mentioned alone."""
        shown = {**self.inputs, **{name: typed.value for name, typed in self.typed.items()}}
        # What else there is among the options stands in the instructions themselves.
        shown["options"] = _texts_of(*self.typed["options"])
        names = sorted(mentioned, key=lambda place: (place[0] != "output", place[0], place[1] or ""))
        lines: dict[str, str] = {}
        for root, key in names:
            if root != "metadata":
                lines |= _lines(root, shown[root])
            elif key in self.metadata:
                lines |= _lines(f"{root}.{key}", self.metadata[str(key)])
        return [piece for name, text in lines.items() for piece in pieces_of(_exhibit(name), [text])]


def _exhibit(name: str) -> Exhibit:
    return Exhibit(f"{name}:", "", lambda _, __: ())


def _with_labels(shape: Shape | None, value: Any) -> Any:
    """Return the value with its labels as texts that may stand in the instructions."""
    if shape is None:
        return value
    if shape.kind == "object":
        return {name: _with_labels(shape.properties.get(name), inner) for name, inner in value.items()}
    if shape.kind == "array":
        return [_with_labels(shape.items, inner) for inner in value]
    return Plain(value) if shape.kind == "label" else value


def _texts_of(shape: Shape | None, value: Any) -> Any:
    """Return the value with None in the place of all that is no text of somebody's own."""
    if shape is None or shape.kind == "text":
        return value
    if shape.kind == "object":
        return {name: _texts_of(inner, value[name]) for name, inner in shape.properties.items()}
    return [_texts_of(shape.items, inner) for inner in value] if shape.kind == "array" else None


def _lines(name: str, value: Any) -> dict[str, str]:
    return dict(_named_lines(name, value))


def _named_lines(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if name.endswith("]") and not any(isinstance(inner, Mapping | list) for inner in value.values()):
            yield name, "; ".join(f"{key}: {_told(inner)}" for key, inner in value.items() if inner is not None)
            return
        for key, inner in value.items():
            yield from _named_lines(f"{name}.{key}", inner)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from _named_lines(f"{name}[{place}]", inner)
    elif value is not None:
        yield name, _told(value)


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
