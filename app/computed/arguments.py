"""Arguments of tool calls against the JSON schemas that the tools declare."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.computed.json_schema import TooManySteps, Violation, WrongSchema, check_schema, violations
from app.domain.parts import ToolCall

LONGEST_SCHEMA: Final = 20_000
"""Characters; against longer ones nothing is checked."""
MAX_STEPS: Final = 200_000
"""For all calls together; each has LEAST_STEPS. What takes more is not checked."""
LEAST_STEPS: Final = 200


def first_faults(calls: Sequence[ToolCall], schemas: Mapping[str, Any]) -> Iterator[Violation | None]:
    """Yield, for every call, the first place where its arguments do not fit the schema of its tool, by name.

    None where they fit, where the tool has no schema, and where the schema can't be used: callers declare schemas for
    models to read, with patterns that are not RE2's among them.
    """
    usable = {
        name: schemas[name] for name in {call.name for call in calls} & schemas.keys() if _is_usable(schemas[name])
    }
    steps = max(LEAST_STEPS, MAX_STEPS // max(1, len(calls)))
    for call in calls:
        yield _first_fault(usable[call.name], call.arguments, steps) if call.name in usable else None


def _is_usable(schema: Any) -> bool:
    if len(str(schema)) > LONGEST_SCHEMA:
        return False
    try:
        check_schema(schema)
    except (WrongSchema, RecursionError):
        return False
    return True


def _first_fault(schema: Mapping[str, Any], arguments: Any, steps: int) -> Violation | None:
    try:
        return next(iter(violations(schema, arguments, 1, steps)), None)
    except (TooManySteps, WrongSchema):
        return None
