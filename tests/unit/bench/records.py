"""Records for tests of the quality bench."""

from typing import Any

from bench.labelled.records import Record


def record(row: str = "row1", score: float | None = 0.0, label: int = 0, **fields: Any) -> Record:
    """A record of the scorer bias; without a score, of a run that failed."""
    defaults: dict[str, Any] = {
        "model": "fake/judge",
        "scorer": "bias",
        "scorer_version": "1",
        "options": '{"strategy": "labels"}',
        "file": "bias.jsonl",
        "row": row,
        "group": row,
        "category": "gender",
        "lang": "en",
        "label": label,
        "status": "failed" if score is None else "completed",
        "score": score,
        "higher_is_better": False,
        "error": "judge_refused" if score is None else None,
        "judge_calls": 1,
        "input_tokens": 100,
        "output_tokens": 10,
        "seconds": 0.5,
    }
    return Record(**(defaults | fields))
