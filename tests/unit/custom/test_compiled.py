from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from app.custom.compiled import compiled
from app.custom.definition import ScorerDefinition
from app.custom.options import own_values
from app.domain.errors import InvalidRequest
from app.domain.request import ExampleSet, Options, Scoring, Strategy
from app.judge.scorer import Measure
from tests.unit.custom.definitions import CALM, LEVEL, PROMISES, SHIPPED, changed, faults, scorer, shipped


@pytest.mark.parametrize("base", [CALM, PROMISES, LEVEL], ids=["calm", "promises", "level"])
def test_a_scorer_tells_of_itself_what_every_scorer_does(base: dict[str, Any]) -> None:
    made = scorer(base)
    assert isinstance(made, Measure)
    assert made.uses_judge
    assert (made.id, made.version, made.direction) == (base["id"], base["version"], base["direction"])
    assert made.strategies == (Strategy.THREE_STEP,)
    assert (made.scorings, made.example_sets) == ((Scoring.HARD,), (ExampleSet.NONE,))
    assert made.needs[0] == "output"
    assert [made.interpret(value) for value in (0.0, 0.35, 0.6, 0.65, 1.0)] == [
        "low",
        "medium",
        "medium",
        "high",
        "high",
    ]
    for schema in made.step_schemas.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_definitions_have_no_faults(name: str) -> None:
    assert compiled(shipped(name)).id == name


def test_own_options_are_checked_beside_the_common_ones() -> None:
    made = scorer(LEVEL)
    options = made.options.model_validate({"strict": True, "scale": 10})
    assert (options.scale, own_values(made.own, options)) == (10.0, {"strict": True, "audience": "everybody"})
    assert own_values(None, Options()) == {}
    assert set(made.options.model_json_schema()["properties"]) >= {"scale", "strict", "audience"}
    for wrong in ({"strict": "perhaps"}, {"audience": "x" * 81}, {"audience": "\x00"}, {"nothing": 1}, {"own_0": True}):
        with pytest.raises(ValidationError):
            made.options.model_validate(wrong)


def test_options_of_every_kind() -> None:
    properties = {
        "tone": {"enum": ["warm", "cool"], "default": "warm"},
        "limit": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        "count": {"type": "integer", "minimum": 1, "default": 2},
        "copy": {"type": "boolean", "default": False},
        "model_config": {"type": "string", "default": ""},
        "terms": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "default": []},
        "rules": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "properties": {"text": {"type": "string"}, "weight": {"type": "number"}}},
        },
    }
    options = {"type": "object", "properties": properties, "required": ["rules"]}
    made = scorer(CALM, {"options": options})
    rules = [{"text": "Be brief.", "weight": 0.5}]
    given_values = made.options.model_validate({"rules": rules, "count": 3})
    assert own_values(made.own, given_values) == {
        "tone": "warm",
        "limit": 0.5,
        "count": 3,
        "copy": False,
        "model_config": "",
        "terms": [],
        "rules": rules,
    }
    for wrong in (
        {},
        {"rules": []},
        {"rules": [{"text": "a"}]},
        {"rules": [{"text": "a", "weight": 1, "more": 2}]},
        {"rules": rules, "tone": "hot"},
        {"rules": rules, "limit": 2},
        {"rules": rules, "count": 0},
        {"rules": rules, "count": 10**30},
        {"rules": [{"text": "a", "weight": -1e300}]},
        {"rules": rules, "terms": ["a", "b", "c"]},
    ):
        with pytest.raises(ValidationError):
            made.options.model_validate(wrong)


def test_free_texts_are_verbatim_and_labels_are_not() -> None:
    assert {"why", "text", "opinion"} <= scorer(CALM).verbatim_fields
    assert "calm" not in scorer(CALM).verbatim_fields
    assert "promises" in scorer(PROMISES).verbatim_fields
    assert {"readers", "terms"} <= scorer(LEVEL).verbatim_fields


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"bands": [{"name": "all", "low": 0, "high": 0.9}]}, "#/bands"),
        ({"bands": [{"name": "all", "low": 1, "high": 0.9}, {"name": "b", "low": 0, "high": 1}]}, "#/bands/0/high"),
        ({"options": {"type": "array"}}, "#/options/items"),
        ({"options.properties.scale": {"type": "number", "default": 1}}, "#/options/properties/scale"),
        (
            {"options.properties.includeReason": {"type": "boolean", "default": True}},
            "#/options/properties/includeReason",
        ),
        ({"preprocess.select": "parts"}, "#/preprocess"),
        ({"preprocess.schema": None}, "#/preprocess"),
        ({"preprocess.instructions": "Think of something."}, "#/preprocess/instructions"),
        ({"preprocess.instructions": "{{ preprocessStepResult }}"}, "#/preprocess/instructions"),
        ({"preprocess.schema.properties.terms.pattern": "a"}, "#/preprocess/schema/properties/terms/pattern"),
        ({"analyze.instructions": "Rate it."}, "#/analyze/instructions"),
        ({"analyze.instructions": "Rate {{ options.audience }}."}, "#/analyze/instructions"),
        ({"analyze.instructions": "Rate {{ output }}. {{ env }}"}, "#/analyze/instructions"),
        ({"analyze.instructions": "Rate {{ output }}. {{ analyzeStepResult.fit }}"}, "#/analyze/instructions"),
        ({"analyze.instructions": "Rate {{ output }}. {{ options.nothing }}"}, "#/analyze/instructions"),
        ({"analyze.instructions": "{% include 'x' %}{{ output }}"}, "#/analyze/instructions"),
        ({"analyze.instructions": "{{ output }}{{ groundTruth.words }}"}, "#/analyze/instructions"),
        ({"analyze.schema": {"type": "string"}}, "#/analyze/schema"),
        ({"generateReason.instructions": "{{ analyzeStepResult.nothing }}"}, "#/generateReason/instructions"),
        ({"score": "analyze.fit"}, ""),
        ({"score": "analyze.nothing"}, "#/score"),
        ({"score": "verdicts[0].fit"}, "#/score"),
        ({"score": "[1].map(a, [a, a]).size()"}, "#/score"),
    ],
)
def test_faults_tell_where(changes: dict[str, Any], pointer: str) -> None:
    assert list(faults(LEVEL, changes)) == ([pointer] if pointer else [])


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"preprocess": None}, "#/analyze/forEach"),
        ({"preprocess.select": "package"}, "#/preprocess/select"),
        ({"preprocess.select": "Items"}, "#/preprocess/select"),
        ({"analyze.schema.properties.text": {"type": "string"}}, "#/analyze/schema/properties/text"),
        ({"analyze.schema.properties.N": {"type": "integer"}}, "#/analyze/schema/properties/N"),
        ({"score": "share(size(verdicts.filter(v, v.vague)), size(verdicts))"}, "#/score"),
        (
            {
                "preprocess.select": None,
                "preprocess.schema": {"type": "object", "properties": {"one": {"type": "string"}}},
            },
            "#/analyze/forEach",
        ),
        (
            {
                "preprocess.select": None,
                "preprocess.schema": {
                    "type": "object",
                    "properties": {name: {"type": "array", "items": {"type": "string"}} for name in ("one", "two")},
                },
            },
            "#/analyze/forEach",
        ),
    ],
)
def test_faults_of_items(changes: dict[str, Any], pointer: str) -> None:
    assert list(faults(PROMISES, changes)) == [pointer]


def test_the_formula_has_to_say_what_no_verdicts_give() -> None:
    told = faults(PROMISES, {"score": "verdicts.map(v, v.vague ? 1.0 : 0.0).mean()"})
    assert "size(verdicts) == 0 ? null : ..." in told["#/score"]


def test_all_faults_are_told_at_once() -> None:
    changes = {
        "bands": [{"name": "a", "low": 0, "high": 0}],
        "options": {"type": "string"},
        "preprocess.schema": {"type": "string"},
        "analyze.schema": {"type": "string"},
        "generateReason.instructions": "{{ env }}",
    }
    assert list(faults(LEVEL, changes)) == ["#/bands", "#/options", "#/preprocess/schema", "#/analyze/schema"]


def test_no_fault_repeats_what_was_sent() -> None:
    changes = {
        "score": "canary + 1",
        "analyze.instructions": "{{ canary }}",
        "preprocess.instructions": "{% canary %}{{ output }}",
    }
    told = faults(LEVEL, changes)
    assert len(told) == 3
    assert "canary" not in str(told)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "Calm"},
        {"id": "a"},
        {"id": "a" * 64},
        {"version": "a b"},
        {"description": " "},
        {"needs": ["everything"]},
        {"needs": []},
        {"analyze.instructions": "x" * 10_001},
        {"analyze.forEach": "words"},
        {"score": "1" * 2_001},
        {"score": " "},
        {"bands": []},
        {"more": 1},
        {"analyze.more": 1},
        {"analyze.instructions": "\x00"},
        {"preprocess": {"instructions": "a", "select": "no name"}},
    ],
)
def test_fields_are_bounded(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ScorerDefinition.model_validate(changed(CALM, changes))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "enum", "a", "$ref", "required", "maxItems"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(JSON, JSON, st.text(max_size=30), st.text(max_size=30))
def test_any_definition_compiles_or_is_refused(schema: Any, options: Any, instructions: str, score: str) -> None:
    changes = {"analyze.schema": schema, "options": options, "analyze.instructions": instructions, "score": score}
    try:
        scorer(CALM, changes)
    except (InvalidRequest, ValidationError):
        return
