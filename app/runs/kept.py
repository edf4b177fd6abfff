"""What is kept of a run: `store: result` keeps neither prompts nor quotations of the scored text.

A reason is the judge's own words, but it is asked to quote the worst: reasons are answered and not kept.
"""

from typing import Any

from app.domain.request import StorePolicy
from app.domain.run import VERBATIM_FIELDS, Run


def kept(run: Run, policy: StorePolicy) -> Run:
    """Return the run as it may be stored under this policy; spans stay, so the caller's own text can be quoted."""
    if policy is StorePolicy.FULL:
        return run
    return run.model_copy(
        update={
            "reason": None,
            "preprocess_prompt": None,
            "analyze_prompt": None,
            "generate_reason_prompt": None,
            "preprocess_step_result": _without_quotations(run.preprocess_step_result),
            "analyze_step_result": _without_quotations(run.analyze_step_result),
        }
    )


def _without_quotations(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _blanked(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_quotations(item) for item in value]
    return value


def _blanked(name: str, value: Any) -> Any:
    if name == "reason":
        return None
    if name not in VERBATIM_FIELDS:
        return _without_quotations(value)
    return [] if isinstance(value, list) else ""
