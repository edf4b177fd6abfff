"""Messages and tool calls, as callers send them."""

import json
from typing import Any

import pytest

from tests.contract.running import RunningApp
from tests.contract.shapes import pointers, problem, run, unique

TOOLS = [
    {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    {"name": "book_table", "description": "Books a table in a restaurant."},
]
QUESTION = "What is the weather in Paris?"


def openai(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


def anthropic(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": name, "input": arguments}]}


def ai_sdk(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    part = {"type": f"tool-{name}", "toolCallId": "1", "state": "input-available", "input": arguments}
    return {"role": "assistant", "parts": [part]}


def mastra(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    invocation = {"state": "call", "toolCallId": "1", "toolName": name, "args": arguments}
    return {
        "role": "assistant",
        "content": {"format": 2, "parts": [{"type": "tool-invocation", "toolInvocation": invocation}]},
    }


@pytest.mark.parametrize("shape", [openai, anthropic, ai_sdk, mastra])
def test_tool_calls_of_every_shape(api: RunningApp, shape: Any) -> None:
    body = {
        "input": QUESTION,
        "output": [
            shape("get_weather", {"city": "Paris"}),
            shape("get_weather", {"city": "Rome"}),
            shape("sell_house", {}),
        ],
        "options": {"tools": TOOLS},
    }
    judged = run(api.client.post("/v1/scorers/tool-call-accuracy/runs", json=body), 200)
    assert [(one["verdict"], one["known"], one["call"]) for one in judged["analyzeStepResult"]["verdicts"]] == [
        ("yes", True, 'get_weather {"city": "Paris"}'),
        ("no", True, 'get_weather {"city": "Rome"}'),
        ("no", False, "sell_house {}"),
    ]
    assert judged["analyzeStepResult"]["missingCalls"] == []
    assert (judged["score"], judged["interpretation"]) == (0.3333, "some calls wrong or missing")
    assert judged["coverage"] == {"asked": 4, "judged": 4}


def test_a_missing_call(api: RunningApp) -> None:
    body = {"input": QUESTION, "output": [{"role": "assistant", "content": unique()}], "options": {"tools": TOOLS}}
    judged = run(api.client.post("/v1/scorers/tool-call-accuracy/runs", json=body), 200)
    assert [one["tool"] for one in judged["analyzeStepResult"]["missingCalls"]] == ["get_weather"]
    assert judged["score"] == 0.0


def test_what_is_not_kept_of_a_call(api: RunningApp) -> None:
    body = {"output": [openai("sell_house", {"to": "Ann"})], "options": {"tools": TOOLS}, "store": "result"}
    answer = api.client.post("/v1/scorers/tool-call-accuracy/runs", json=body)
    assert run(answer, 200)["analyzeStepResult"]["verdicts"][0]["call"] == 'sell_house {"to": "Ann"}'
    assert "Ann" not in api.client.get(answer.headers["location"]).text


@pytest.mark.parametrize(
    ("scorer", "body", "where"),
    [
        ("tool-call-accuracy", {"output": "Words."}, ["#/options/tools", "#/output"]),
        ("tool-call-accuracy", {"output": [{"role": "assistant"}], "options": {"tools": TOOLS}}, ["#/output"]),
        ("tool-call-accuracy", {"output": [{"role": "a", "tool_calls": [{}]}]}, ["#/output/0/tool_calls/0"]),
        ("bias", {"output": [openai("get_weather", {})]}, ["#/output"]),
        ("completeness", {"output": [openai("get_weather", {})], "input": "x"}, ["#/output"]),
        ("bias", {"output": [{"role": "user", "content": [{"type": "tool_result", "content": " "}]}]}, ["#/output"]),
        ("bias", {"output": [{"content": "x"}]}, ["#/output/0/role"]),
        ("bias", {"output": [{"role": "a", "parts": [{"type": "tool_use"}]}]}, ["#/output/0/parts/0"]),
        ("bias", {"output": [{"role": "a", "content": [{}] * 500}] * 21}, ["#/output"]),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    api: RunningApp, scorer: str, body: dict[str, Any], where: list[str]
) -> None:
    assert pointers(problem(api.client.post(f"/v1/scorers/{scorer}/runs", json=body), 422, "invalid_request")) == where


def called(arguments: str) -> str:
    return f'{{"output": [{{"role": "a", "parts": [{{"type": "tool-call", "toolName": "t", "args": {arguments}}}]}}]}}'


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ("NaN", 422, "invalid_request"),
        ('{"a": Infinity}', 422, "invalid_request"),
        ('"\\u0000"', 422, "invalid_request"),
        ('"' + "x" * 1_000_001 + '"', 413, "content_too_large"),
        ('{"a": "\\ud800"}', 400, "malformed_json"),
        ("[" * 10_000 + "]" * 10_000, 400, "malformed_json"),
        ("[" * 150 + "]" * 150, 200, None),
        ("9" * 4_000, 200, None),
        ("9" * 10_000, 400, "malformed_json"),
        ('"' + "[" * 90_000 + '"', 422, "context_overflow"),
        ('"\\u202e\\u200b\\ufeff"', 200, None),
    ],
    ids=lambda value: str(value)[:12],
)
def test_hostile_arguments(api: RunningApp, arguments: str, status: int, code: str | None) -> None:
    body = called(arguments)[:-1] + ', "options": {"tools": [{"name": "t", "parameters": {"type": "object"}}]}}'
    headers = {"Content-Type": "application/json"}
    answer = api.client.post("/v1/scorers/tool-call-accuracy/runs", content=body, headers=headers)
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text[:500]


def test_every_turn_of_a_long_conversation_is_judged(api: RunningApp) -> None:
    turns = [{"role": ("user", "assistant")[n % 2], "content": f"This is turn number {n}."} for n in range(1_000)]
    turns[500] = {"role": "assistant", "content": [{"type": "text", "text": "The village is inferior."}]}
    judged = run(api.client.post("/v1/scorers/toxicity/runs", json={"output": turns}), 200)
    assert judged["coverage"] == {"asked": 1_000, "judged": 1_000}
    judged = run(api.client.post("/v1/scorers/bias/runs", json={"output": turns}), 200)
    ((start, end),) = [tuple(item["span"].values()) for item in judged["preprocessStepResult"]["items"]]
    assert (
        "\n\n".join(
            turn["content"] if isinstance(turn["content"], str) else turn["content"][0]["text"] for turn in turns
        )[start:end]
        == "The village is inferior."
    )
