"""Chat messages in the shapes of the usual APIs, and what they hold: texts, tool calls, and data that tools gave.

Read are chat completions and items of responses (OpenAI), content blocks (Anthropic), model and UI messages (AI SDK)
and stored messages (Mastra).
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from app.domain.model import ShortText, Text
from app.domain.parts import (
    CALL_TYPES,
    MOST_CALLS,
    CalledTool,
    Data,
    Entry,
    Parts,
    Shape,
    StoredContent,
    ToolCall,
    ToolInvocation,
    ToolInvocations,
    arguments_in,
    given_by_tool,
)

Item = TypeVar("Item")

MOST_MESSAGES = 1_000
MOST_PARTS = 10_000
"""In all messages of a text together: each costs time to read, before anything is judged."""
MESSAGE_BREAK = "\n\n"

_LISTS = ("content", "parts", "summary", "tool_calls", "toolInvocations")


class Message(Shape):
    """A chat message in any of the usual shapes, or an item of a response."""

    type: ShortText | None = Field(None, description="Kind of an item without a role, such as function_call (OpenAI)")
    role: ShortText | None = Field(
        None, description="Who speaks; needed where no `type` is given", validate_default=True
    )
    content: Text | Parts | StoredContent | None = None
    parts: Parts | None = Field(None, description="Parts of a UI message (AI SDK)")
    refusal: Text | None = None
    tool_calls: Annotated[list[CalledTool], Field(max_length=MOST_CALLS)] | None = Field(
        None, alias="tool_calls", description="Calls that the model makes (OpenAI)"
    )
    tool_invocations: ToolInvocations | None = Field(None, description="Calls of a UI message (AI SDK 4)")
    name: ShortText | None = Field(None, description="In items of type function_call: the tool that is called")
    arguments: Data = Field(None, description="In items of type function_call: a text of JSON")
    output: Data = Field(None, description="In items of type function_call_output: the tool's result")
    summary: Parts | None = Field(None, description="In items of type reasoning (OpenAI)")

    @field_validator("role")
    @classmethod
    def _refuse_no_role(cls, role: str | None, info: ValidationInfo) -> str | None:
        if role is None and info.data.get("type") is None:
            raise PydanticCustomError("missing", "Field required")
        return role

    @model_validator(mode="after")
    def _refuse_nameless_call(self) -> Self:
        if self.type in CALL_TYPES and not self.name:
            raise PydanticCustomError("tool_call", "Name the tool that is called here")
        return self

    def entries(self) -> list[Entry]:
        """Return its texts, the calls made in it and the data that tools gave, in order."""
        stored = self.content if isinstance(self.content, StoredContent) else StoredContent()
        text = self.content if isinstance(self.content, str) else stored.content
        content = self.content if isinstance(self.content, list) else stored.parts
        parts = [*_all(self.summary), *_all(content), *_all(self.parts)]
        entries = [entry for part in parts for entry in part.entries()]
        # Beside parts, the same text stands in `content` once more, and the same calls in lists of their own.
        said = [part.text for part in parts if part.type == "text" and part.text]
        if text and text not in ("".join(said), *said):
            entries = [text, *entries]
        if not any(isinstance(entry, ToolCall) for entry in entries):
            calls: list[CalledTool | ToolInvocation] = [*_all(self.tool_calls), *_all(self.tool_invocations)]
            calls += _all(stored.tool_invocations)
            entries += [entry for call in calls for entry in call.entries()]
        return [*entries, *self._of_item()]

    def _of_item(self) -> Iterator[Entry]:
        if self.refusal:
            yield self.refusal
        if self.type in CALL_TYPES:
            yield ToolCall(self.name or "", arguments_in(self.arguments))
        yield from given_by_tool(self.output)

    def texts(self) -> list[str]:
        """Return the texts of every part, in order."""
        return [entry for entry in self.entries() if isinstance(entry, str)]


def _refuse_too_many_parts(messages: Any) -> Any:
    given = [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    holders = [*given, *(content for message in given if isinstance(content := message.get("content"), dict))]
    lists = [holder.get(name) for holder in holders for name in _LISTS]
    if sum(len(parts) for parts in lists if isinstance(parts, list)) > MOST_PARTS:
        raise PydanticCustomError("too_long", "Send at most 10000 parts and tool calls in all messages together")
    return messages


Messages = Annotated[
    list[Message], Field(min_length=1, max_length=MOST_MESSAGES), BeforeValidator(_refuse_too_many_parts)
]


def text_of(content: str | Sequence[Message]) -> str:
    """Return the one text that spans refer to: all texts of all messages, joined by a blank line.

    Texts are what was said, refused or thought, whoever did, and results of tools that are texts. The arguments of
    calls and results that are data are none.
    """
    if isinstance(content, str):
        return content
    return MESSAGE_BREAK.join(text for message in content for text in message.texts())


def calls_in(content: str | Sequence[Message]) -> list[ToolCall]:
    """Return all calls of tools, in order; a mere text has none."""
    messages = () if isinstance(content, str) else content
    return [entry for message in messages for entry in message.entries() if isinstance(entry, ToolCall)]


def _all(given: Sequence[Item] | None) -> Sequence[Item]:
    return given or ()
