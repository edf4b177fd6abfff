"""What an operation of the API is, as the document describes it."""

from dataclasses import dataclass, field
from typing import Any

from app.api.answers import JSON

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that is no shared problem; `schema` names a component, or is None for text without one."""

    description: str
    examples: Json = field(default_factory=dict)
    schema: str | None = None
    media_type: str = JSON
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    id: str
    tag: str
    summary: str
    answers: dict[int, Answer]
    description: str = ""
    parameters: tuple[Json, ...] = ()
    body: str | None = None
    body_examples: Json = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def example(summary: str, value: Any) -> Json:
    """Return one named example."""
    return {"summary": summary, "value": value}
