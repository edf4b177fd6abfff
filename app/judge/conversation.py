"""A conversation in which tools are called: its messages and its calls, each under marks of their own.

No text of a message can pose as a call.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from app.domain.messages import Message
from app.domain.parts import ToolCall, ToolResult
from app.domain.request import RunRequest
from app.judge.exhibit import Exhibit


class PlacedCall(NamedTuple):
    """A call, and the number (from 1) of the message that it was made in."""

    message: int
    call: ToolCall

    def shown(self, note: str = "") -> str:
        """Return the call as the judge is shown it, a note of ours before its name and arguments."""
        return f"M{self.message}{note}: {self.call.name} {written(self.call.arguments)}"


def placed_calls(request: RunRequest) -> list[PlacedCall]:
    """Return all calls in the output, in order."""
    return [
        PlacedCall(number, entry)
        for number, message in enumerate(_messages(request), 1)
        for entry in message.entries()
        if isinstance(entry, ToolCall)
    ]


def written(data: Any) -> str:
    """Return JSON as it is shown; a text as it is."""
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def _messages(request: RunRequest) -> Sequence[Message]:
    return () if isinstance(request.output, str) else request.output


def _told(message: Message) -> str:
    """Return who speaks, what was said and what tools gave."""
    entries = [entry for entry in message.entries() if not isinstance(entry, ToolCall)]
    told = [written(entry.data) if isinstance(entry, ToolResult) else entry for entry in entries]
    return "\n".join([f"{message.role or message.type}:", *told]) if told else ""


MESSAGES = Exhibit(
    "M{}:",
    "M1:, M2: and so on mark the messages, without their calls",
    lambda request, _: [_told(message) for message in _messages(request)],
)
CALLS = Exhibit(
    "C{}:",
    "C1:, C2: and so on mark all calls, each with its message",
    lambda request, _: [placed.shown() for placed in placed_calls(request)],
)
