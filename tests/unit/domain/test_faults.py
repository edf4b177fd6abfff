"""Pointers lead to the caller's own fields, one fault a place, and no submitted value is repeated."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from app.domain.faults import MAX_FAULTS, faults_of, pointer
from app.domain.request import ScoreRequest


def faults(document: Any, model: type[BaseModel] = ScoreRequest, base: str = "#") -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(document)
    return {fault.pointer: fault.code for fault in faults_of(caught.value, document, base)}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param([], {"#": "model_type"}, id="not an object"),
        pytest.param({}, {"#/output": "missing"}, id="missing field"),
        pytest.param({"output": "a", "zz": 1}, {"#/zz": "extra_forbidden"}, id="unknown field"),
        pytest.param({"output": 5}, {"#/output": "string_type"}, id="no branch of a union fits"),
        pytest.param({"output": "  "}, {"#/output": "blank"}, id="the branch that fits the type tells"),
        pytest.param({"output": "a\x00"}, {"#/output": "nul_character"}, id="validator in a union branch"),
        pytest.param({"output": []}, {"#/output": "too_short"}, id="no messages"),
        pytest.param({"output": [{"role": 1}]}, {"#/output/0/role": "string_type"}, id="inside a union branch"),
        pytest.param(
            {"output": [{"role": "user", "content": [{"text": 5}]}]},
            {"#/output/0/content/0/text": "string_type"},
            id="inside a union inside a union",
        ),
        pytest.param(
            {"output": [{"role": "user", "content": 5}, {}]},
            {"#/output/0/content": "string_type", "#/output/1/role": "missing"},
            id="several places of one list",
        ),
        pytest.param(
            {"output": "a", "metadata": {"b c": 1}},
            {"#/metadata/b%20c": "string_pattern_mismatch"},
            id="a key of an object",
        ),
        pytest.param(
            {"output": "a", "metadata": {"k": []}}, {"#/metadata/k": "string_type"}, id="four branches, one fault"
        ),
        pytest.param({"output": "a", "metadata": {"k": float("nan")}}, {"#/metadata/k": "finite_number"}, id="NaN"),
    ],
)
def test_each_fault_is_told_once_at_the_callers_own_place(document: Any, expected: dict[str, str]) -> None:
    assert faults(document) == expected


def test_pointers_start_at_the_given_base() -> None:
    assert faults({"output": "a", "scale": 1}, base="#/scorers/0/options") == {
        "#/scorers/0/options/scale": "extra_forbidden"
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ([], "#"),
        (["a", 0, "b"], "#/a/0/b"),
        (["a/b~c"], "#/a~1b~0c"),
        (["é"], "#/%C3%A9"),
        (["\ud800"], "#/?"),
        (["x" * 1_000], "#/" + "x" * 64),
    ],
)
def test_pointers_are_uri_fragments(path: list[str | int], expected: str) -> None:
    assert pointer("#", path) == expected


def test_an_endless_list_of_faults_is_cut() -> None:
    assert len(faults({"output": [{"role": n} for n in range(500)]})) == MAX_FAULTS


def test_no_value_is_repeated() -> None:
    with pytest.raises(ValidationError) as caught:
        ScoreRequest.model_validate({"output": ["canary-value"], "mode": "canary-value", "model": "canary-value"})
    told = faults_of(caught.value, {"output": ["canary-value"], "mode": "canary-value", "model": "canary-value"})
    assert len(told) == 3
    assert "canary" not in repr(told)
