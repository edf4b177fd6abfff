"""A small custom scorer for tests."""

from typing import Any

CALM: dict[str, Any] = {
    "id": "calm",
    "version": "1",
    "description": "How many sentences of an answer stay calm.",
    "direction": "higher_is_better",
    "analyze": {
        "instructions": "Is each segment calm?",
        "forEach": "segments",
        "schema": {
            "type": "object",
            "properties": {"calm": {"type": "string", "enum": ["yes", "no"]}},
            "required": ["calm"],
            "additionalProperties": False,
        },
    },
    "score": "double(size(verdicts.filter(v, v.calm == 'yes'))) / double(size(verdicts))",
    "example": {
        "output": "We are on it. Do not shout at us!",
        "analyzeStepResult": {"verdicts": [{"n": 1, "calm": "yes"}, {"n": 2, "calm": "no"}]},
    },
}
