"""The pieces of chat messages in the shapes of the usual APIs, and what they hold for scorers.

What no shape here names is ignored; a tool call without a name is refused, since a call that nobody counts would
falsify scores.
"""

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError, from_json

from app.domain.model import MAX_TEXT, Model, ShortText, Text, refuse_nul

MOST_CALLS = 1_000

CALL_TYPES = frozenset({"function_call", "custom_tool_call", "mcp_call", "tool-call", "dynamic-tool"})
"""Types of items and parts that are calls, beside those below."""
_TOOL_USE = "tool_use"  # Anthropic's, and those of tools that it runs itself: server_tool_use, mcp_tool_use
_UI_CALL = "tool-"  # tool-NAME in UI messages of the AI SDK, which have a state
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class ToolCall(NamedTuple):
    """A call of a tool: `arguments` as JSON, or as the text that was given where it is none."""

    name: str
    arguments: Any


class ToolResult(NamedTuple):
    """Data that a tool gave, as JSON; a result that is a text is one, like any other of its message."""

    data: Any


Entry = str | ToolCall | ToolResult


def refuse_unkeepable(value: Any) -> Any:
    """Return JSON unchanged, or refuse what can't be stored and sent on, and what is too long."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode()
    except (ValueError, TypeError, RecursionError):
        raise PydanticCustomError(
            "json", "Send JSON here, without NaN, infinities, halves of surrogate pairs and very deep nesting"
        ) from None
    if len(written) > MAX_TEXT:
        raise PydanticCustomError("too_long", "Send at most 1000000 characters of JSON here")
    if _NUL.search(written):
        raise PydanticCustomError("nul_character", "Remove the NUL character from this JSON")
    return value


Data = Annotated[Any, AfterValidator(refuse_unkeepable)]
"""Any JSON: the arguments of a call, or what a tool gave."""

ToolName = Annotated[str, StringConstraints(min_length=1, max_length=512), AfterValidator(refuse_nul)]


class Shape(Model):
    """What others write: unknown keys are ignored, and what was not given is not written either."""

    model_config = ConfigDict(extra="ignore")

    @model_serializer(mode="wrap")
    def _what_was_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


class ToolInvocation(Shape):
    """A call within a part or a message, with its result when there is one (AI SDK 4, Mastra)."""

    tool_name: ToolName
    args: Data = None
    input: Data = None
    result: Data = None

    def entries(self) -> list[Entry]:
        """Return the call, and what it gave."""
        given = self.args if self.args is not None else self.input
        return [ToolCall(self.tool_name, arguments_in(given)), *given_by_tool(self.result)]


class Part(Shape):
    """A piece of a message: a text, a tool call or its result; images, files and the like hold nothing to judge."""

    type: ShortText = "text"
    text: Text | None = None
    thinking: Text | None = None
    reasoning: Text | None = None
    refusal: Text | None = None
    content: Data = Field(None, description="A tool's result: a text, or blocks of it (Anthropic)")
    name: ShortText | None = Field(None, description="The tool that is called (Anthropic)")
    tool_name: ShortText | None = Field(None, description="The tool that is called, or whose result this is (AI SDK)")
    input: Data = Field(None, description="Arguments of a call (Anthropic, AI SDK 5)")
    args: Data = Field(None, description="Arguments of a call (AI SDK 4)")
    arguments: Data = Field(None, description="Arguments of a call, as JSON or as a text of JSON")
    output: Data = Field(None, description="A tool's result (AI SDK 5)")
    result: Data = Field(None, description="A tool's result (AI SDK 4)")
    error_text: Text | None = Field(None, description="Why a tool failed (AI SDK 5)")
    state: ShortText | None = Field(None, description="How far a call is, in parts of type tool-NAME (AI SDK 5)")
    tool_invocation: ToolInvocation | None = Field(None, description="A call, in parts of type tool-invocation")

    @model_validator(mode="after")
    def _refuse_nameless_call(self) -> Self:
        if self._is_call and not self._called:
            raise PydanticCustomError("tool_call", "Name the tool that is called here")
        return self

    @property
    def _is_call(self) -> bool:
        is_ui_call = self.type.startswith(_UI_CALL) and self.state is not None
        return self.type in CALL_TYPES or self.type.endswith(_TOOL_USE) or is_ui_call

    @property
    def _called(self) -> str:
        own = self.tool_name or self.name
        return own or (self.type.removeprefix(_UI_CALL) if self.state is not None else "")

    def entries(self) -> Iterator[Entry]:
        """Yield what it holds, in the order in which it was said and done."""
        yield from filter(None, (self.text, self.thinking, self.reasoning, self.refusal))
        yield from texts_in(self.content)
        if self._is_call:
            given = (value for value in (self.input, self.args, self.arguments) if value is not None)
            yield ToolCall(self._called, arguments_in(next(given, None)))
        if self.tool_invocation is not None:
            yield from self.tool_invocation.entries()
        for result in (self.output, self.result, self.error_text):
            yield from given_by_tool(result)


Parts = Annotated[list[Part], Field(max_length=1_000)]
ToolInvocations = Annotated[list[ToolInvocation], Field(max_length=MOST_CALLS)]


class StoredContent(Shape):
    """The content of a message as Mastra stores it; `content` and `toolInvocations` repeat what is in `parts`."""

    parts: Parts | None = None
    content: Text | None = None
    tool_invocations: ToolInvocations | None = None


class FunctionCall(Shape):
    """The function or the custom tool that is called; `arguments` are a text of JSON."""

    name: ToolName
    arguments: Text | None = None
    input: Text | None = None


class CalledTool(Shape):
    """An entry of `tool_calls` (OpenAI)."""

    function: FunctionCall | None = None
    custom: FunctionCall | None = None

    @model_validator(mode="after")
    def _refuse_nameless_call(self) -> Self:
        if self.function is None and self.custom is None:
            raise PydanticCustomError("tool_call", "Name the tool that is called here, in function.name or custom.name")
        return self

    def entries(self) -> list[Entry]:
        """Return the call."""
        called = [call for call in (self.function, self.custom) if call is not None]
        return [ToolCall(call.name, arguments_in(call.arguments or call.input)) for call in called]


def arguments_in(given: Any) -> Any:
    """Return the arguments of a call: a text of JSON is read, and left as it is where it is none."""
    if given is None or given == "":
        return {}
    if not isinstance(given, str):
        return given
    try:
        return from_json(given, allow_inf_nan=False)
    except ValueError:
        return given


def given_by_tool(result: Any) -> list[Entry]:
    """Return what a tool gave: its texts where there are some, else data."""
    if result is None or result == "":
        return []
    return [*texts_in(result)] or [ToolResult(result)]


def texts_in(value: Any) -> list[str]:
    """Return a text, or those of blocks: objects with a type and `text`, `content` or `value`, or a list of them."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list):
        return [text for item in value if isinstance(item, dict) for text in texts_in(item)]
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("type"), str):
        return [text for key in ("text", "content", "value") for text in texts_in(value.get(key))]
    content = value.get("content")
    return texts_in(content) if isinstance(content, list) else []
