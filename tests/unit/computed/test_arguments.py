from typing import Any

import pytest

from app.computed import arguments
from app.computed.arguments import first_faults
from app.domain.parts import ToolCall

CITY = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}}, "required": ["city"]}


def faults(schema: Any, *given: Any) -> list[tuple[tuple[str | int, ...], str] | None]:
    return [fault and tuple(fault) for fault in first_faults([ToolCall("a", one) for one in given], {"a": schema})]


def test_the_first_fault_of_every_call() -> None:
    assert faults(CITY, {"city": "Paris"}, {"city": "paris"}, {}, 5, "{") == [
        None,
        (("city",), "pattern"),
        ((), "required"),
        ((), "type"),
        ((), "type"),
    ]


def test_tools_without_a_schema() -> None:
    assert list(first_faults([ToolCall("b", 1)], {"a": CITY})) == [None]
    assert list(first_faults([], {"a": CITY})) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"type": "string", "pattern": "(?!x)"},
        {"$ref": "#/nowhere"},
        {"$ref": "https://schemas.example/x"},
        {"type": "string", "description": "x" * 20_000},
    ],
    ids=["no schema", "a pattern of another syntax", "to nowhere", "out of itself", "very long"],
)
def test_against_a_schema_that_can_not_be_used_nothing_is_checked(schema: Any) -> None:
    assert faults(schema, 5) == [None]


def test_many_calls_share_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "MAX_STEPS", 1_000)
    schema = {"items": {"type": "integer"}}
    wrong = [*range(300), "x"]
    assert faults(schema, wrong) == [((300,), "type")]
    assert faults(schema, wrong, wrong, wrong, wrong, wrong) == [None] * 5
