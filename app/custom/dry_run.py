"""Try a definition on an example: what its judge would be shown, and the score of given replies. No judge is asked."""

from typing import Any, Literal

from app.custom.compiled import CustomScorer
from app.custom.definition import Example
from app.domain.model import Model


class DryRun(Model):
    """What a form shows of a definition that was tried on an example.

    Prompts are null for steps that would not be asked. `score` (0..1) and `interpretation` are null when the formula
    gives null (`not_scorable`).
    """

    status: Literal["completed", "not_scorable"]
    score: float | None
    interpretation: str | None
    preprocess_prompt: str | None
    analyze_prompt: str | None
    generate_reason_prompt: str | None
    preprocess_step_result: dict[str, Any] | None
    analyze_step_result: dict[str, Any]


def dry_run(scorer: CustomScorer, example: Example) -> DryRun:
    """Return what a run over the example would show, had the judge replied as the example says.

    Raises InvalidRequest with faults whose pointers begin with `#/example`, or with `#/score` when the formula gives
    something else than a number from 0 to 1 or null.
    """
    raise NotImplementedError
