"""Read the JSON schemas of a definition; what can't be served is a fault, and nothing is ignored."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from app.custom.reading import Misfit, read
from app.custom.shape import LIST_LENGTH, MAX_NUMBER, TEXT_LENGTH, Shape
from app.domain.errors import Fault
from app.domain.faults import pointer
from app.judge.labels import label_in

MAX_SIZE: Final = 10_000
MAX_PLACES: Final = 60
MAX_DEPTH: Final = 5
MAX_LABELS: Final = 50
MAX_LABEL: Final = 100
MAX_TEXT: Final = 2_000
MAX_ITEMS: Final = 50
MAX_DESCRIPTION: Final = 500

# The reserved words of CEL, in which the formula names properties.
RESERVED: Final = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_MARKS: Final = frozenset({"type", "title", "description"})
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"enum", "maxLength"}),
    "number": frozenset({"minimum", "maximum"}),
    "integer": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
}


class _Unfit(Exception):
    def __init__(self, path: tuple[str | int, ...], detail: str) -> None:
        super().__init__(detail)
        self.path = path
        self.detail = detail


Path = tuple[str | int, ...]


def shape_of(schema: Any, base: str, faults: list[Fault], *, for_options: bool = False) -> Shape | None:
    """Return the shape of an object that a schema describes, or None after adding the fault that was found.

    `base` points at the schema. For options, properties may have a `default`, and need one unless they are required.
    """
    try:
        _refuse_oversized(schema)
        reader = _Reader(for_options=for_options)
        shape = reader.shape(schema, ())
        _refuse_other_than_object(shape)
    except _Unfit as unfit:
        faults.append(Fault(pointer=pointer(base, unfit.path), code="json_schema", detail=unfit.detail))
        return None
    return shape


def _refuse_oversized(schema: Any) -> None:
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise _Unfit((), "Send a JSON schema of JSON values, nested less deeply") from None
    if size > MAX_SIZE:
        raise _Unfit((), f"Send a JSON schema of at most {MAX_SIZE} characters")


def _refuse_other_than_object(shape: Shape) -> None:
    if shape.kind != "object":
        raise _Unfit((), "Describe an object here, with type and properties")


class _Reader:
    """One walk through a schema, counting its places."""

    def __init__(self, *, for_options: bool) -> None:
        self._for_options = for_options
        self._places = 0

    def shape(self, schema: Any, path: Path) -> Shape:
        """Return the shape of one place; raises _Unfit."""
        self._places += 1
        if self._places > MAX_PLACES or len(path) > 2 * MAX_DEPTH:
            raise _Unfit(path, f"Use at most {MAX_PLACES} places and {MAX_DEPTH} levels in a schema")
        kind = _kind_of(schema, path)
        with_default = self._for_options and len(path) == 2
        allowed = _MARKS | _KEYWORDS[kind] | ({"default"} if with_default else set())
        for keyword in schema:
            if keyword not in allowed:
                raise _Unfit((*path, keyword), f"Leave this keyword out; known here are: {', '.join(sorted(allowed))}")
        description = schema.get("description")
        if description is not None and not (isinstance(description, str) and len(description) <= MAX_DESCRIPTION):
            raise _Unfit((*path, "description"), f"Send a text of at most {MAX_DESCRIPTION} characters")
        return _READERS[kind](self, schema, path, description)

    def object_shape(self, schema: Any, path: Path, description: str | None) -> Shape:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            raise _Unfit((*path, "properties"), "Name at least one property")
        if schema.get("additionalProperties", False) is not False:
            raise _Unfit((*path, "additionalProperties"), "Leave it out: no other properties are ever allowed")
        required = schema.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) and name in properties for name in required):
            raise _Unfit((*path, "required"), "List properties that there are")
        _refuse_odd_names(properties, path)
        shapes = {}
        for name, inner in properties.items():
            place = (*path, "properties", name)
            shapes[name] = self.shape(inner, place)
            if self._for_options and not path:
                shapes[name] = _with_default(shapes[name], inner, place, required=name in required)
        return Shape("object", description, properties=shapes)

    def array_shape(self, schema: Any, path: Path, description: str | None) -> Shape:
        items = self.shape(schema.get("items"), (*path, "items"))
        if items.kind == "array":
            raise _Unfit((*path, "items"), "Put an object between two arrays")
        most = _count(schema, "maxItems", path, LIST_LENGTH, MAX_ITEMS)
        return Shape("array", description, items=items, least=_count(schema, "minItems", path, 0, most), most=most)

    def string_shape(self, schema: Any, path: Path, description: str | None) -> Shape:
        if "enum" not in schema:
            return Shape("text", description, most=_count(schema, "maxLength", path, TEXT_LENGTH, MAX_TEXT))
        if "maxLength" in schema:
            raise _Unfit((*path, "maxLength"), "Leave it out beside an enum")
        labels = schema["enum"]
        if not isinstance(labels, list) or not 1 <= len(labels) <= MAX_LABELS:
            raise _Unfit((*path, "enum"), f"List 1 to {MAX_LABELS} labels")
        for place, label in enumerate(labels):
            if (
                not isinstance(label, str)
                or len(label) > MAX_LABEL
                or label.strip() != label
                or not label.isprintable()
            ):
                detail = f"A label is a text of at most {MAX_LABEL} characters on one line, without spaces around"
                raise _Unfit((*path, "enum", place), detail)
        known = tuple(labels)
        for place, label in enumerate(known):
            if label_in(label, known) != label or label in known[:place]:
                detail = "Choose labels that differ in more than case, spaces and punctuation"
                raise _Unfit((*path, "enum", place), detail)
        return Shape("label", description, labels=known)

    def number_shape(self, schema: Any, path: Path, description: str | None) -> Shape:
        whole = schema["type"] == "integer"
        low, high = (_bound(schema, keyword, path, whole=whole) for keyword in ("minimum", "maximum"))
        if low is not None and high is not None and low > high:
            raise _Unfit((*path, "maximum"), "Set a maximum that is not below the minimum")
        return Shape("integer" if whole else "number", description, low=low, high=high)

    def boolean_shape(self, _: Any, __: Path, description: str | None) -> Shape:
        return Shape("boolean", description)


_READERS: Final[Mapping[str, Callable[[_Reader, Any, Path, str | None], Shape]]] = {
    "object": _Reader.object_shape,
    "array": _Reader.array_shape,
    "string": _Reader.string_shape,
    "number": _Reader.number_shape,
    "integer": _Reader.number_shape,
    "boolean": _Reader.boolean_shape,
}


def _kind_of(schema: Any, path: Path) -> str:
    if not isinstance(schema, dict):
        raise _Unfit(path, "Send a JSON schema")
    kind = schema.get("type", "string" if "enum" in schema else None)
    if not isinstance(kind, str) or kind not in _KEYWORDS:
        raise _Unfit((*path, "type"), f"Set one type: {', '.join(_KEYWORDS)}")
    return kind


def _refuse_odd_names(names: Mapping[str, Any], path: Path) -> None:
    seen = set()
    for name in names:
        place = (*path, "properties", name)
        if not (name.isascii() and name.isidentifier() and len(name) <= 40) or name.startswith("_"):
            raise _Unfit(place, "Name properties with letters, digits and underscores, a letter first, 40 at most")
        if name in RESERVED:
            raise _Unfit(place, "This name is a reserved word of CEL; choose another")
        plain = name.replace("_", "").casefold()
        if plain in seen:
            raise _Unfit(place, "Choose names that differ in more than case and underscores")
        seen.add(plain)


def _count(schema: Any, keyword: str, path: Path, usual: int, most: int) -> int:
    value = schema.get(keyword, usual)
    least = 0 if keyword == "minItems" else 1
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _Unfit((*path, keyword), f"Send a whole number up to {most}")
    return value


def _bound(schema: Any, keyword: str, path: Path, *, whole: bool) -> float | None:
    value = schema.get(keyword)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or abs(value) > MAX_NUMBER or (whole and not isinstance(value, int)):
        kind = "whole number" if whole else "number"
        raise _Unfit((*path, keyword), f"Send a {kind} between -{MAX_NUMBER} and {MAX_NUMBER}")
    return float(value) if not whole else value


def _with_default(shape: Shape, schema: Any, path: Path, *, required: bool) -> Shape:
    if "default" not in schema:
        if required:
            return shape
        raise _Unfit(path, "Give this option a default, or list it under required")
    try:
        value = read(shape, schema["default"])
    except Misfit as misfit:
        raise _Unfit((*path, "default", *misfit.path), "Send a default that fits the schema") from None
    return replace(shape, default=value)
