"""Messages of every usual shape: no text is left out, every call is counted once, nothing hostile gets through."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from app.domain.messages import MOST_PARTS, Message, Messages, calls_in, text_of
from app.domain.parts import ToolCall, ToolResult

PARIS = {"city": "Paris"}
WEATHER = ToolCall("get_weather", PARIS)
ADAPTER: TypeAdapter[list[Message]] = TypeAdapter(Messages)


def read(*messages: Any) -> list[Message]:
    """Read messages as they come over HTTP, and once more as they are stored."""
    found = ADAPTER.validate_json(json.dumps(messages), strict=True, by_alias=True, by_name=False)
    assert ADAPTER.validate_json(ADAPTER.dump_json(found)) == found
    return found


def entries(*messages: Any) -> list[Any]:
    return [entry for message in read(*messages) for entry in message.entries()]


def refused(*messages: Any) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python(list(messages))
    return [(str(fault["loc"][-1]) if fault["loc"] else "", fault["type"]) for fault in caught.value.errors()]


CHAT_COMPLETION = [
    {"role": "user", "content": [{"type": "text", "text": "Will it rain in Paris?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}},
            {"id": "2", "type": "custom", "custom": {"name": "sh", "input": "date"}},
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "It rains."},
    {"role": "assistant", "content": "Take a coat.", "refusal": "I can't say more."},
]
RESPONSE = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I have to look."}]},
    {"type": "function_call", "call_id": "1", "name": "get_weather", "arguments": '{"city":"Paris"}'},
    {"type": "function_call_output", "call_id": "1", "output": "It rains."},
    {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "A lot."}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
]
BLOCKS = [
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I have to look.", "signature": "x"},
            {"type": "tool_use", "id": "1", "name": "get_weather", "input": PARIS},
            {"type": "server_tool_use", "id": "2", "name": "web_search", "input": {"query": "rain"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "It rains."},
            {
                "type": "tool_result",
                "tool_use_id": "2",
                "content": [
                    {"type": "text", "text": "A lot."},
                    {"type": "search_result", "title": "x", "content": [{"type": "text", "text": "All day."}]},
                    {"type": "image", "source": {"type": "base64", "data": "eA=="}},
                ],
            },
        ],
    },
]
CORE = [
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me look."},
            {"type": "tool-call", "toolCallId": "1", "toolName": "get_weather", "args": PARIS},
            {"type": "tool-call", "toolCallId": "2", "toolName": "get_weather", "input": PARIS},
        ],
    },
    {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": "1", "toolName": "get_weather", "result": {"mm": 4}},
            {
                "type": "tool-result",
                "toolCallId": "2",
                "toolName": "get_weather",
                "output": {"type": "json", "value": {"mm": 4}},
            },
            {"type": "tool-result", "toolName": "get_weather", "output": {"type": "text", "value": "It rains."}},
            {
                "type": "tool-result",
                "toolName": "get_weather",
                "output": {"type": "content", "value": [{"type": "text", "text": "A lot."}, {"type": "media"}]},
            },
            {"type": "tool-result", "toolName": "mcp", "result": {"content": [{"type": "text", "text": "All day."}]}},
        ],
    },
]
INVOCATION = {"state": "result", "toolCallId": "1", "toolName": "get_weather", "args": PARIS, "result": {"mm": 4}}
UI_4 = [
    {
        "role": "assistant",
        "content": "Let me look. Yes.",
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "reasoning": "I have to look.", "details": []},
            {"type": "text", "text": "Let me look."},
            {"type": "tool-invocation", "toolInvocation": INVOCATION},
            {"type": "text", "text": " Yes."},
        ],
        "toolInvocations": [INVOCATION],
    }
]
UI_5 = [
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "text": "I have to look.", "state": "done"},
            {
                "type": "tool-get_weather",
                "toolCallId": "1",
                "state": "output-available",
                "input": PARIS,
                "output": {"mm": 4},
            },
            {"type": "tool-call", "toolCallId": "2", "state": "output-error", "input": {}, "errorText": "No line."},
            {
                "type": "dynamic-tool",
                "toolName": "get_weather",
                "toolCallId": "3",
                "state": "input-available",
                "input": PARIS,
            },
        ],
    }
]
STORED = [
    {"role": "assistant", "content": {"format": 2, **{key: UI_4[0][key] for key in ("parts", "toolInvocations")}}}
]
RAINS = ToolResult({"mm": 4})


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            CHAT_COMPLETION,
            [
                "Will it rain in Paris?",
                WEATHER,
                ToolCall("sh", "date"),
                "It rains.",
                "Take a coat.",
                "I can't say more.",
            ],
            id="chat completion",
        ),
        pytest.param(RESPONSE, ["I have to look.", WEATHER, "It rains.", "A lot.", "Yes."], id="response"),
        pytest.param(
            BLOCKS,
            ["I have to look.", WEATHER, ToolCall("web_search", {"query": "rain"}), "It rains.", "A lot.", "All day."],
            id="content blocks",
        ),
        pytest.param(
            CORE,
            [
                "Let me look.",
                WEATHER,
                WEATHER,
                RAINS,
                ToolResult({"type": "json", "value": {"mm": 4}}),
                "It rains.",
                "A lot.",
                "All day.",
            ],
            id="model messages",
        ),
        pytest.param(UI_4, ["I have to look.", "Let me look.", WEATHER, RAINS, " Yes."], id="UI messages 4"),
        pytest.param(
            UI_5, ["I have to look.", WEATHER, RAINS, ToolCall("call", {}), "No line.", WEATHER], id="UI messages 5"
        ),
        pytest.param(STORED, ["I have to look.", "Let me look.", WEATHER, RAINS, " Yes."], id="stored messages"),
    ],
)
def test_texts_calls_and_data_in_order(messages: list[Any], expected: list[Any]) -> None:
    assert entries(*messages) == expected
    found = read(*messages)
    assert calls_in(found) == [entry for entry in expected if isinstance(entry, ToolCall)]
    assert text_of(found) == "\n\n".join(entry for entry in expected if isinstance(entry, str))


def test_a_mere_text_has_no_calls() -> None:
    assert calls_in('{"name": "get_weather"}') == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "Hi.", "parts": []}, ["Hi."]),
        ({"content": "Hi.", "parts": [{"type": "text", "text": "Hi."}]}, ["Hi."]),
        ({"content": "Hi. You.", "parts": [{"text": "Hi."}, {"text": " You."}]}, ["Hi.", " You."]),
        ({"content": "Else.", "parts": [{"text": "Hi. Else."}]}, ["Else.", "Hi. Else."]),
        ({"content": "", "toolInvocations": [INVOCATION]}, [WEATHER, RAINS]),
        (
            {"content": {"content": "Hi.", "toolInvocations": [{"toolName": "a", "input": 1}]}},
            ["Hi.", ToolCall("a", 1)],
        ),
        ({"content": [{"type": "tool-call", "toolName": "a", "arguments": "{}"}]}, [ToolCall("a", {})]),
        ({"content": [{"type": "tool-result", "result": [1, "a", {"b": 1}]}]}, [ToolResult([1, "a", {"b": 1}])]),
        ({"content": [{"type": "tool-result", "result": 0, "output": ""}, {"content": 7}]}, [ToolResult(0)]),
        ({"content": [{"type": "x", "content": {"content": "data", "type": 5}}]}, []),
    ],
)
def test_what_stands_there_twice_counts_once(message: dict[str, Any], expected: list[Any]) -> None:
    assert entries({"role": "assistant", **message}) == expected


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ('{"a": [1, "é"]}', {"a": [1, "é"]}),
        ("[]", []),
        ("", {}),
        ("{a: 1}", "{a: 1}"),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": "\\ud800"}', '{"a": "\\ud800"}'),
        ("[" * 5_000, "[" * 5_000),
        ("9" * 5_000, "9" * 5_000),
    ],
)
def test_arguments_are_read_where_they_are_json(given: str, arguments: Any) -> None:
    called = {"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": given}}]}
    assert entries(called) == [ToolCall("a", arguments)]


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ({"content": "x"}, ("role", "missing")),
        ({"type": "function_call"}, ("0", "tool_call")),
        ({"role": "a", "tool_calls": [{"type": "function"}]}, ("0", "tool_call")),
        ({"role": "a", "tool_calls": [{"function": {"name": ""}}]}, ("name", "string_too_short")),
        ({"role": "a", "content": [{"type": "tool_use", "input": {}}]}, ("0", "tool_call")),
        ({"role": "a", "content": [{"type": "tool-call", "args": {}}]}, ("0", "tool_call")),
        ({"role": "a", "parts": [{"type": "tool-", "state": "x"}]}, ("0", "tool_call")),
        ({"role": "a", "parts": [{"type": "tool-x", "state": "x", "input": float("nan")}]}, ("input", "json")),
        ({"role": "a", "parts": [{"args": "\ud800"}]}, ("args", "json")),
        ({"role": "a", "parts": [{"args": {"\ud800": 1}}]}, ("args", "json")),
        ({"role": "a", "parts": [{"args": {1, 2}}]}, ("args", "json")),
        ({"role": "a", "parts": [{"args": {"a": ["b\x00"]}}]}, ("args", "nul_character")),
        ({"role": "a", "parts": [{"args": "x" * 1_000_000}]}, ("args", "too_long")),
        ({"role": "a", "parts": [{"toolInvocation": {}}]}, ("toolName", "missing")),
    ],
)
def test_what_can_not_be_read_is_refused(message: dict[str, Any], fault: tuple[str, str]) -> None:
    assert fault in refused(message)


def test_a_written_nul_is_none() -> None:
    assert entries({"role": "a", "content": [{"type": "tool-call", "name": "a", "args": {"a": "\\u0000"}}]})


def test_deep_nesting_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert ("args", "json") in refused({"role": "a", "parts": [{"args": deep}]})


@pytest.mark.parametrize("name", ["content", "parts", "summary", "tool_calls", "toolInvocations"])
def test_there_is_a_limit_to_parts(name: str) -> None:
    many = [{"role": "a", name: [{}] * 1_000}] * (MOST_PARTS // 1_000)
    assert refused(*many, {"role": "a", "content": {"parts": [{}]}}) == [("", "too_long")]
    assert refused(*many, "no message")[-1] == (str(len(many)), "model_type")


TEXTS = st.sampled_from(
    ["", "x", "\u202e\u200b😀", "{}", '{"a": [1]}', "NaN", "tool-x", "tool-call", "tool_use", "type"]
)
SCALARS = st.none() | st.booleans() | st.floats() | st.integers() | TEXTS
NAMES = [
    "type",
    "text",
    "content",
    "value",
    "name",
    "state",
    "input",
    "toolName",
    "toolInvocation",
    "function",
    "parts",
]
OBJECTS = st.dictionaries(st.sampled_from(NAMES), SCALARS | st.lists(SCALARS, max_size=2), max_size=4)
ODD = st.dictionaries(
    st.sampled_from([*(field.alias or name for name, field in Message.model_fields.items()), "state"]),
    SCALARS | OBJECTS | st.lists(OBJECTS, max_size=3),
    max_size=6,
)


@given(st.lists(st.builds(lambda odd: {"role": "a", **odd}, ODD), min_size=1, max_size=3))
def test_whatever_is_taken_can_be_stored_and_read(messages: list[Any]) -> None:
    try:
        found = ADAPTER.validate_python(messages)
    except ValidationError:
        return
    stored = ADAPTER.dump_json(found)
    assert text_of(ADAPTER.validate_json(stored)) == text_of(found)
    assert calls_in(ADAPTER.validate_json(stored)) == calls_in(found)
