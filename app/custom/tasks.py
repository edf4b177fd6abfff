"""The judge calls of a custom scorer: the same kinds as every scorer's, with schemas of its own."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from app.custom.reading import Misfit, objects_in, read
from app.custom.shape import Shape
from app.domain.errors import WrongReply
from app.domain.run import Step
from app.judge.fence import FENCE_RULE
from app.judge.labels import number_in, reason_in
from app.judge.reading import Numbers
from app.judge.reply_schema import EXPLANATION_LENGTH, Schema, object_of, some_of, text_up_to
from app.judge.task import Task
from app.ports import Completion

_NAMED: Final = "In it, a line begins with the name of what it holds and a colon"
_OTHERS: Final = "decide only on those; - marks context; other lines begin with the name of what they hold and a colon"
_SEGMENTS: Final = f"In it, the lines that begin with [number] are the segments of `output`: {_OTHERS}"
_ITEMS: Final = f"In it, the lines that begin with [number] are the items: {_OTHERS}"
_KEPT: Final = "Keys and labels stay as they are."


@lru_cache(maxsize=256)
def object_task(step: Step, name: str, instructions: str, shape: Shape) -> Task[dict[str, Any]]:
    """Return the task that asks for one object."""

    def reply(value: Any, _: Numbers, __: Completion | None = None) -> dict[int, dict[str, Any]]:
        try:
            return {1: read(shape, value)}
        except Misfit:
            return {}

    return Task(
        step=step,
        name=name,
        key="answer",
        system=_system(instructions, _NAMED, f'{{"answer": {told(shape)}}}.'),
        schema=lambda _: object_of({"answer": shape.schema()}),
        read=reply,
        write=lambda answers: answers[1],
        tokens_once=24 + shape.tokens,
        tokens_per_item=1,
        items_per_call=1,
        reasons=True,
    )


@lru_cache(maxsize=256)
def verdicts_task(name: str, instructions: str, shape: Shape, units: str) -> Task[dict[str, Any]]:
    """Return the task that asks for one object a unit."""

    def schema(numbers: Numbers) -> Schema:
        number = {"n": {"type": "integer", "enum": list(numbers)}}
        verdict = object_of(number | {name: inner.schema() for name, inner in shape.properties.items()})
        counts = {"minItems": len(numbers), "maxItems": len(numbers)}
        return object_of({"verdicts": {"type": "array", "items": verdict, **counts}})

    form = told(shape).removeprefix("{")
    return Task(
        step=Step.ANALYZE,
        name=name,
        key="verdicts",
        system=_system(
            instructions,
            _SEGMENTS if units == "segments" else _ITEMS,
            f'{{"verdicts": [{{"n": number, {form}]}}, one entry for every number, in order.',
        ),
        schema=schema,
        read=lambda value, numbers, _=None: objects_in(shape, value, numbers),
        write=lambda answers: [{"n": number, **answer} for number, answer in sorted(answers.items())],
        tokens_once=24,
        tokens_per_item=shape.tokens + 12,
        items_per_call=20,
        reasons=True,
        units=units,
    )


@lru_cache(maxsize=256)
def selection_task(name: str, instructions: str, key: str) -> Task[bool]:
    """Return the task that asks which segments matter."""

    def reply(value: Any, numbers: Numbers, _: Completion | None = None) -> dict[int, bool]:
        chosen = [number_in(item) for item in value] if isinstance(value, list) else [None]
        if not set(chosen) <= set(numbers):
            raise WrongReply(
                "The judge named segments that it had not been shown, re-asks included; "
                "try again or use a model that follows a JSON schema"
            )
        return {number: number in chosen for number in numbers}

    return Task(
        step=Step.PREPROCESS,
        name=name,
        key=key,
        system=_system(instructions, _SEGMENTS, f'{{"{key}": [numbers]}}, or {{"{key}": []}} when there is none.'),
        schema=lambda numbers: object_of({key: some_of(numbers)}),
        read=reply,
        write=lambda answers: [number for number, chosen in sorted(answers.items()) if chosen],
        tokens_once=24,
        tokens_per_item=6,
        items_per_call=40,
        reasons=False,
    )


@lru_cache(maxsize=256)
def reason_task(name: str, instructions: str) -> Task[str]:
    """Return the task that asks for the score's reason."""

    def reply(value: Any, _: Numbers, __: Completion | None = None) -> dict[int, str]:
        reason = reason_in(value, EXPLANATION_LENGTH)
        return {} if reason is None else {1: reason}

    return Task(
        step=Step.GENERATE_REASON,
        name=name,
        key="reason",
        system=_system(instructions, _NAMED, '{"reason": text}.'),
        schema=lambda _: object_of({"reason": text_up_to(EXPLANATION_LENGTH)}),
        read=reply,
        write=lambda answers: answers[1],
        tokens_once=300,
        tokens_per_item=1,
        items_per_call=1,
        reasons=True,
    )


def told(shape: Shape) -> str:
    """Return a shape as the judge is told it."""
    match shape.kind:
        case "object":
            return "{" + ", ".join(f'"{name}": {told(inner)}' for name, inner in shape.properties.items()) + "}"
        case "array":
            return f"[at most {shape.most} of {told(shape.item)}]"
        case "label":
            return " | ".join(f'"{label}"' for label in shape.labels)
        case "text":
            return f"text of at most {shape.most} characters"
        case "boolean":
            return "true | false"
    ends: Mapping[str, float | None] = {"from": shape.low, "to": shape.high}
    bounds = "".join(f" {word} {end:g}" for word, end in ends.items() if end is not None)
    return ("whole number" if shape.kind == "integer" else "number") + bounds


def _system(instructions: str, legend: str, form: str) -> str:
    return f"{instructions}\n\n{FENCE_RULE} {legend}.\n\nAnswer with JSON only: {form} {_KEPT}"
