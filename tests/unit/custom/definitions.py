"""Definitions for tests: small ones, and those that the repository ships."""

import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

from app.custom.compiled import CustomScorer, compiled
from app.custom.definition import ScorerDefinition
from app.domain.errors import InvalidRequest

SHIPPED = {path.stem: path for path in sorted((Path(__file__).parents[3] / "deploy/scorers").glob("*.toml"))}

CALM: dict[str, Any] = {
    "id": "calm",
    "version": "1",
    "description": "How much of a text stays calm.",
    "direction": "higher_is_better",
    "analyze": {
        "instructions": "Is each segment of {{ output }} calm?",
        "forEach": "segments",
        "schema": {"type": "object", "properties": {"calm": {"enum": ["yes", "no"]}, "why": {"type": "string"}}},
    },
    "score": "share(size(verdicts.filter(v, v.calm == 'yes')), size(verdicts))",
}
"""One verdict a segment."""

PROMISES: dict[str, Any] = {
    "id": "promises",
    "version": "2",
    "description": "How many promises are vague.",
    "direction": "lower_is_better",
    "preprocess": {"instructions": "Which segments of {{ output }} promise something?", "select": "promises"},
    "analyze": {
        "instructions": "Is each promise vague?",
        "forEach": "items",
        "schema": {"type": "object", "properties": {"vague": {"type": "boolean"}}},
    },
    "generateReason": {"instructions": "Explain to the author which promises are vague."},
    "score": "size(verdicts) == 0 ? 0.0 : share(size(verdicts.filter(v, v.vague)), size(verdicts))",
}
"""Verdicts on segments that were selected."""

LEVEL: dict[str, Any] = {
    "id": "level",
    "version": "1",
    "description": "Whether a text suits its readers.",
    "direction": "higher_is_better",
    "needs": ["output", "input"],
    "options": {
        "type": "object",
        "properties": {
            "strict": {"type": "boolean", "default": False},
            "audience": {"type": "string", "maxLength": 80, "default": "everybody"},
        },
    },
    "preprocess": {
        "instructions": "Who reads {{ output }}, the answer to {{ input }}?",
        "schema": {
            "type": "object",
            "properties": {"readers": {"type": "string"}, "terms": {"type": "array", "items": {"type": "string"}}},
        },
    },
    "analyze": {
        "instructions": (
            "Rate {{ output }} for {{ preprocessStepResult.readers }}, meant for {{ options.audience }}."
            "{% if options.strict %} Be strict.{% endif %}"
            "{% if metadata.channel %} On {{ metadata.channel }}.{% endif %}"
        ),
        "schema": {"type": "object", "properties": {"fit": {"type": "integer", "minimum": 0, "maximum": 10}}},
    },
    "generateReason": {"instructions": "Explain the rating {{ analyzeStepResult.fit }} of {{ output }}."},
    "score": "options.strict && analyze.fit < 5 ? null : double(analyze.fit) / 10.0",
}
"""One object for the whole text, with options."""


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with values at dotted paths changed; None removes what is there."""
    document = deepcopy(base)
    for path, value in changes.items():
        *way, last = path.split(".")
        place = document
        for step in way:
            place = place.setdefault(step, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return document


def scorer(base: dict[str, Any], changes: dict[str, Any] | None = None) -> CustomScorer:
    """Return the scorer of a definition."""
    return compiled(ScorerDefinition.model_validate(changed(base, changes or {})))


def faults(base: dict[str, Any], changes: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the details of a definition's faults by their pointers."""
    try:
        scorer(base, changes)
    except InvalidRequest as error:
        return {fault.pointer: fault.detail for fault in error.faults}
    return {}


def shipped(name: str) -> ScorerDefinition:
    """Return a definition of the repository."""
    return ScorerDefinition.model_validate(tomllib.loads(SHIPPED[name].read_text("utf-8")))
