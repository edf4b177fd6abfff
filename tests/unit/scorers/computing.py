"""Scores without a judge, for tests of the formulas."""

from typing import Any

from jsonschema import Draft202012Validator

from app.computed.scorer import ComputedScorer, Inputs, Result


def score(
    scorer: ComputedScorer, output: str, *, question: str | None = None, truth: str | None = None, **options: Any
) -> Result:
    """Return what scorer finds in texts, its step result checked against the published schema; options in camelCase."""
    result = scorer.compute(Inputs(output, question, truth), scorer.options.model_validate(options))
    Draft202012Validator(scorer.step_schemas["analyzeStepResult"]).validate(result.analysis.model_dump(mode="json"))
    assert result.value is None or 0.0 <= result.value <= 1.0
    assert scorer.reasons[result.sentence]["en"].format(**result.facts)
    return result
