from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.custom.schema import MAX_PLACES, shape_of
from app.custom.shape import Shape
from app.domain.errors import Fault


def text_of(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXTS = {"type": "array", "items": {"type": "string"}}


def read_schema(schema: Any, *, for_options: bool = False) -> tuple[Shape | None, list[Fault]]:
    faults: list[Fault] = []
    return shape_of(schema, "#/schema", faults, for_options=for_options), faults


FULL = text_of(
    {
        "verdict": {"enum": ["yes", "not sure"], "description": "What it is"},
        "why": {"type": "string", "maxLength": 90, "title": "Why"},
        "sure": {"type": "number", "minimum": 0, "maximum": 1},
        "count": {"type": "integer", "minimum": 1},
        "fine": {"type": "boolean"},
        "parts": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}},
        },
    }
)


def test_what_the_judge_is_sent_is_strict_and_bounded() -> None:
    shape, faults = read_schema({**FULL, "required": ["why"], "additionalProperties": False, "description": "All"})
    assert not faults
    assert shape is not None
    sent = shape.schema()
    Draft202012Validator.check_schema(sent)
    assert sent == {
        "description": "All",
        "type": "object",
        "properties": {
            "verdict": {"description": "What it is", "type": "string", "enum": ["yes", "not sure"]},
            "why": {"type": "string", "maxLength": 90},
            "sure": {"type": "number", "minimum": 0.0, "maximum": 1.0},
            "count": {"type": "integer", "minimum": 1},
            "fine": {"type": "boolean"},
            "parts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "words": {"type": "array", "items": {"type": "string", "maxLength": 400}, "maxItems": 20}
                    },
                    "required": ["words"],
                    "additionalProperties": False,
                },
                "minItems": 1,
                "maxItems": 3,
            },
        },
        "required": ["verdict", "why", "sure", "count", "fine", "parts"],
        "additionalProperties": False,
    }


def test_free_texts_are_found_at_any_depth() -> None:
    shape, _ = read_schema(FULL)
    assert shape is not None
    assert shape.free_texts == {"why", "words"}


def test_a_longer_reply_is_planned_for_more_tokens() -> None:
    small, _ = read_schema(text_of({"verdict": {"enum": ["yes", "no"]}}))
    large, _ = read_schema(FULL)
    assert small is not None
    assert large is not None
    assert 12 < small.tokens < 60 < large.tokens < 20_000


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "boolean"}
    for _ in range(depth):
        schema = text_of({"inner": schema})
    return schema


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ("text", "#/schema"),
        ({"type": "string"}, "#/schema"),
        ({"properties": {}}, "#/schema/type"),
        ({"type": ["object", "null"]}, "#/schema/type"),
        (text_of({}), "#/schema/properties"),
        ({"type": "object"}, "#/schema/properties"),
        (text_of({"a": {"type": "null"}}), "#/schema/properties/a/type"),
        (text_of({"a": {"$ref": "https://example.org/schema"}}), "#/schema/properties/a/type"),
        (text_of({"a": {"type": "string", "$ref": "#"}}), "#/schema/properties/a/$ref"),
        (text_of({"a": {"type": "string", "pattern": "(a+)+$"}}), "#/schema/properties/a/pattern"),
        (text_of({"a": {"type": "string", "format": "date"}}), "#/schema/properties/a/format"),
        (text_of({"a": {"type": "string", "default": "x"}}), "#/schema/properties/a/default"),
        ({**text_of({"a": {"type": "string"}}), "additionalProperties": True}, "#/schema/additionalProperties"),
        ({**text_of({"a": {"type": "string"}}), "required": ["b"]}, "#/schema/required"),
        ({**text_of({"a": {"type": "string"}}), "required": "a"}, "#/schema/required"),
        ({**text_of({"a": {"type": "string"}}), "patternProperties": {"(a+)+$": {}}}, "#/schema/patternProperties"),
        (text_of({"a": {"type": "string", "description": 3}}), "#/schema/properties/a/description"),
        (text_of({"a": {"type": "string", "description": "x" * 501}}), "#/schema/properties/a/description"),
        (text_of({"a": {"type": "string", "maxLength": 2_001}}), "#/schema/properties/a/maxLength"),
        (text_of({"a": {"type": "string", "maxLength": True}}), "#/schema/properties/a/maxLength"),
        (text_of({"a": {"type": "string", "maxLength": 0}}), "#/schema/properties/a/maxLength"),
        (text_of({"a": {"enum": ["x"], "maxLength": 3}}), "#/schema/properties/a/maxLength"),
        (text_of({"a": {"enum": []}}), "#/schema/properties/a/enum"),
        (text_of({"a": {"enum": "yes"}}), "#/schema/properties/a/enum"),
        (text_of({"a": {"enum": [str(n) for n in range(51)]}}), "#/schema/properties/a/enum"),
        (text_of({"a": {"enum": ["x", 1]}}), "#/schema/properties/a/enum/1"),
        (text_of({"a": {"enum": ["x", " y"]}}), "#/schema/properties/a/enum/1"),
        (text_of({"a": {"enum": ["x", "y\nz"]}}), "#/schema/properties/a/enum/1"),
        (text_of({"a": {"enum": ["x", "y" * 101]}}), "#/schema/properties/a/enum/1"),
        (text_of({"a": {"enum": ["Yes", "yes"]}}), "#/schema/properties/a/enum/0"),
        (text_of({"a": {"enum": ["yes", "yes"]}}), "#/schema/properties/a/enum/1"),
        (text_of({"a": {"enum": ["not sure", "not_sure"]}}), "#/schema/properties/a/enum/0"),
        (text_of({"a": {"type": "integer", "enum": [1]}}), "#/schema/properties/a/enum"),
        (text_of({"a": {"type": "integer", "minimum": 0.5}}), "#/schema/properties/a/minimum"),
        (text_of({"a": {"type": "number", "minimum": "0"}}), "#/schema/properties/a/minimum"),
        (text_of({"a": {"type": "number", "minimum": True}}), "#/schema/properties/a/minimum"),
        (text_of({"a": {"type": "number", "maximum": 1e300}}), "#/schema/properties/a/maximum"),
        (text_of({"a": {"type": "number", "minimum": 2, "maximum": 1}}), "#/schema/properties/a/maximum"),
        (text_of({"a": {"type": "array"}}), "#/schema/properties/a/items"),
        (text_of({"a": {"type": "array", "items": {"type": "array"}}}), "#/schema/properties/a/items/items"),
        (
            text_of({"a": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}}),
            "#/schema/properties/a/items",
        ),
        (
            text_of({"a": {"type": "array", "items": {"type": "string"}, "maxItems": 51}}),
            "#/schema/properties/a/maxItems",
        ),
        (
            text_of({"a": {"type": "array", "items": {"type": "string"}, "minItems": 21}}),
            "#/schema/properties/a/minItems",
        ),
        (text_of({"_a": {"type": "string"}}), "#/schema/properties/_a"),
        (text_of({"a-b": {"type": "string"}}), "#/schema/properties/a-b"),
        (text_of({"å": {"type": "string"}}), "#/schema/properties/%C3%A5"),
        (text_of({"a" * 41: {"type": "string"}}), "#/schema/properties/" + "a" * 41),
        (text_of({"package": {"type": "string"}}), "#/schema/properties/package"),
        (text_of({"a_b": {"type": "string"}, "aB": {"type": "string"}}), "#/schema/properties/aB"),
        (nested(6), "#/schema" + "/properties/inner" * 6),
        (nested(2_000), "#/schema"),
        (text_of({f"p{n}": {"type": "string"} for n in range(MAX_PLACES)}), f"#/schema/properties/p{MAX_PLACES - 1}"),
        (text_of({"a": {"type": "string", "title": "x" * 10_000}}), "#/schema"),
        (text_of({"a": {"type": "number", "minimum": float("nan")}}), "#/schema"),
        (text_of({"a": {"type": "number", "minimum": {1}}}), "#/schema"),
    ],
)
def test_what_can_not_be_served_is_a_fault(schema: Any, pointer: str) -> None:
    shape, faults = read_schema(schema)
    assert shape is None
    assert [(fault.pointer, fault.code) for fault in faults] == [(pointer, "json_schema")]


def test_deep_enough_is_allowed() -> None:
    shape, faults = read_schema(nested(5))
    assert shape is not None
    assert not faults


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (text_of({"a": {"type": "string"}}), "#/schema/properties/a"),
        (text_of({"a": {"type": "number", "maximum": 1, "default": 2}}), "#/schema/properties/a/default"),
        (
            text_of({"a": {"type": "object", "properties": {"b": {"type": "string"}}, "default": {"b": 1}}}),
            "#/schema/properties/a/default/b",
        ),
        (
            text_of({"a": {"type": "object", "properties": {"b": {"type": "string", "default": ""}}}}),
            "#/schema/properties/a/properties/b/default",
        ),
    ],
)
def test_options_need_a_default_that_fits(schema: Any, pointer: str) -> None:
    _, faults = read_schema(schema, for_options=True)
    assert [fault.pointer for fault in faults] == [pointer]


def test_options_have_their_defaults() -> None:
    schema = {**text_of({"a": {"type": "number", "default": 0}, "b": {"type": "string"}}), "required": ["b"]}
    shape, faults = read_schema(schema, for_options=True)
    assert not faults
    assert shape is not None
    assert {name: inner.default for name, inner in shape.properties.items()} == {"a": 0.0, "b": None}
