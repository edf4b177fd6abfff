import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.computed import json_schema
from app.scorers.checks import SCORER
from tests.unit.scorers.computing import score


def test_worked_example() -> None:
    """Five conditions, three of them met."""
    result = score(
        SCORER,
        '{"a": 1.5}',
        includes=['"a"', '"b"'],
        excludes=["error"],
        matches=[r"\d\.\d"],
        jsonSchema={"properties": {"a": {"type": "integer"}}},
    )
    assert result.value == pytest.approx(3 / 5)
    assert result.analysis.model_dump(mode="json")["results"] == [
        {"check": "includes", "index": 0, "passed": True, "span": {"start": 1, "end": 4}, "faults": []},
        {"check": "includes", "index": 1, "passed": False, "span": None, "faults": []},
        {"check": "excludes", "index": 0, "passed": True, "span": None, "faults": []},
        {"check": "matches", "index": 0, "passed": True, "span": {"start": 6, "end": 9}, "faults": []},
        {
            "check": "jsonSchema",
            "index": 0,
            "passed": False,
            "span": None,
            "faults": [{"pointer": "#/a", "keyword": "type"}],
        },
    ]


@given(st.text(min_size=1, max_size=30).filter(lambda text: text.strip() and "\x00" not in text), st.booleans())
def test_a_text_is_and_includes_itself(text: str, ignore_case: bool) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    result = score(SCORER, decomposed, equals=text, includes=[text], ignoreCase=ignore_case)
    assert result.value == 1.0
    span = result.analysis.model_dump()["results"][0]["span"]
    assert unicodedata.normalize("NFC", decomposed[span["start"] : span["end"]]) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("output", "wanted", "ignore_case", "span"),
    [
        ("a cafe\u0301!", "café", False, (2, 7)),
        ("e\u0301a", "e", False, None),
        ("Große STRASSE", "straße", True, (6, 13)),
        ("ßs", "s", True, (0, 1)),
        ("e\u0301 x", "x", False, (3, 4)),
        ("abc", "B", False, None),
    ],
)
def test_spans_are_those_of_the_original(
    output: str, wanted: str, ignore_case: bool, span: tuple[int, int] | None
) -> None:
    (told,) = score(SCORER, output, includes=[wanted], ignoreCase=ignore_case).analysis.model_dump()["results"]
    assert told["span"] == (None if span is None else {"start": span[0], "end": span[1]})


def test_several_spans_in_a_text_of_another_form() -> None:
    told = score(SCORER, "e\u0301a\u0300b", includes=["é", "b"]).analysis.model_dump()["results"]
    assert [item["span"] for item in told] == [{"start": 0, "end": 2}, {"start": 4, "end": 5}]


def test_an_unwanted_text_is_shown_where_it_stands() -> None:
    (told,) = score(SCORER, "an error", excludes=["error"]).analysis.model_dump()["results"]
    assert (told["passed"], told["span"]) == (False, {"start": 3, "end": 8})


def test_equal_but_for_whitespace_around() -> None:
    assert score(SCORER, " yes\n", equals="yes").value == 1.0
    assert score(SCORER, "Yes", equals="yes").value == 0.0


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b$", "(.*)*b$"])
def test_no_pattern_hangs(pattern: str) -> None:
    text = "a" * 200_000 + "c"
    assert score(SCORER, text, matches=[pattern]).value == 0.0
    assert score(SCORER, json.dumps(text), jsonSchema={"pattern": pattern}).value == 0.0
    assert score(SCORER, json.dumps({text: 1}), jsonSchema={"patternProperties": {pattern: False}}).value == 1.0


@pytest.mark.parametrize(("ignore_case", "value"), [(True, 1.0), (False, 0.0)])
def test_patterns_and_case(ignore_case: bool, value: float) -> None:
    assert score(SCORER, "ÉCOLE", matches=["école"], ignoreCase=ignore_case).value == value


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"matches": ["(?=a)"]},
        {"matches": [r"(a)\1"]},
        {"matches": [r"(\pL{500}){2}"]},
        {"matches": ["("]},
        {"includes": [""]},
        {"jsonSchema": {"type": "nope"}},
        {"jsonSchema": {"pattern": "(?=a)"}},
        {
            "jsonSchema": {
                "items": [{"patternProperties": {"(?=a)": {}}}],
                "$schema": "http://json-schema.org/draft-07/schema#",
            }
        },
        {"jsonSchema": {"allOf": [{"properties": {"a": {"pattern": "("}}}]}},
        {"jsonSchema": {"$schema": "http://127.0.0.1:9/draft"}},
        {"jsonSchema": {"$schema": 7}},
        {"jsonSchema": {"patternProperties": {}, "unevaluatedProperties": False}},
        {"jsonSchema": {"description": "x" * 100_001}},
    ],
)
def test_checks_that_can_not_be_made_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        SCORER.options.model_validate(options)
    assert "(?=a)" not in caught.value.errors(include_input=False)[0]["msg"]


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValidationError, match="less deeply"):
        SCORER.options.model_validate({"jsonSchema": nested(3_000)})


@pytest.mark.parametrize("output", ["not JSON", "NaN", "[Infinity]", "[" * 100_000, "1" * 5_000, '{"a": 1} and more'])
def test_what_is_no_json_fits_no_schema(output: str) -> None:
    (told,) = score(SCORER, output, jsonSchema={}).analysis.model_dump()["results"]
    assert (told["passed"], told["faults"]) == (False, [{"pointer": "#", "keyword": "json"}])


@pytest.mark.parametrize(
    ("schema", "instance", "keywords"),
    [
        ({}, 1, []),
        ({"pattern": "^a"}, "ba", ["pattern"]),
        ({"pattern": "^a"}, 1, []),
        ({"properties": {"pattern": {"type": "null"}, "patternProperties": {}}}, {"pattern": 1}, ["type"]),
        ({"patternProperties": {"^a": {"type": "integer"}}}, {"ab": "x", "b": "x"}, ["type"]),
        ({"patternProperties": {"^a": False}}, [], []),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1, "b": 2}, ["None"]),
        ({"patternProperties": {"^b": {}}, "additionalProperties": False}, {"b": 2}, []),
        ({"additionalProperties": {"type": "string"}}, {"b": 2}, ["type"]),
        ({"additionalProperties": False}, 3, []),
        ({"uniqueItems": True}, [1, True, "1", [1], [True], {"a": 1}, {"a": True}], []),
        ({"uniqueItems": True}, [1, 1.0], ["uniqueItems"]),
        ({"uniqueItems": True}, [{"a": [1], "b": None}, {"b": None, "a": [1]}], ["uniqueItems"]),
        ({"uniqueItems": False}, [1, 1], []),
        ({"uniqueItems": True}, "aa", []),
        ({"$defs": {"n": {"type": "null"}}, "$ref": "#/$defs/n"}, 1, ["type"]),
        ({"items": {"type": "string"}}, list(range(30)), ["type"] * 10),
    ],
)
def test_json_schemas(schema: dict[str, Any], instance: Any, keywords: list[str]) -> None:
    (told,) = score(SCORER, json.dumps(instance), jsonSchema=schema).analysis.model_dump()["results"]
    assert [fault["keyword"] for fault in told["faults"]] == keywords
    assert told["passed"] == (not keywords)


def test_a_fault_is_told_by_place_and_never_by_content() -> None:
    result = score(SCORER, '{"a/b": ["secret"]}', jsonSchema={"additionalProperties": {"items": {"type": "null"}}})
    (told,) = result.analysis.model_dump()["results"]
    assert told["faults"] == [{"pointer": "#/a~1b/0", "keyword": "type"}]


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/schema", "file:///etc/hostname", "#/$defs/none", "other"])
def test_nothing_is_fetched(reference: str) -> None:
    result = score(SCORER, "1", jsonSchema={"$ref": reference}, includes=["1"])
    assert (result.value, result.sentence) == (None, "undecided")
    assert result.analysis.model_dump()["results"][1]["faults"] == [{"pointer": "#", "keyword": "$ref"}]


def doubling(depth: int) -> dict[str, Any]:
    links = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)}
    return {"$defs": links | {f"a{depth}": {"type": "array"}}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize(
    ("schema", "output"),
    [
        (doubling(40), "[]"),
        (doubling(40), "{}"),
        ({"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "[" * 60 + "]" * 60),
        ({"$ref": "#"}, "1"),
        ({"anyOf": [{"type": "integer"}] * 2_000}, json.dumps("a" * 300_000)),
    ],
    ids=["doubling", "doubling errors", "by depth", "itself", "large messages"],
)
def test_what_takes_too_long_has_no_score(schema: dict[str, Any], output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "MAX_STEPS", 20_000)
    result = score(SCORER, output, jsonSchema=schema)
    assert (result.value, result.sentence) == (None, "undecided")


@given(st.lists(st.sampled_from(["tea", "xyz"]), min_size=1, max_size=6))
def test_the_share_of_what_is_met(includes: list[str]) -> None:
    assert score(SCORER, "tea", includes=includes).value == includes.count("tea") / len(includes)
