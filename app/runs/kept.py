"""What is kept of a run: `store: result` keeps neither prompts nor quotations of the scored text.

A reason is the judge's own words, but it is asked to quote the worst: reasons are answered and not kept.
"""

from typing import Any

from app.domain.request import RunRequest, StorePolicy
from app.domain.run import Run
from app.runs.catalog import Catalog


async def kept(run: Run, request: RunRequest, scorers: Catalog) -> Run:
    """Return the run as it may be stored; spans stay, so the caller's own text can be quoted."""
    if request.store is StorePolicy.FULL:
        return run
    names = await scorers.verbatim_fields(request)
    return run.model_copy(
        update={
            "reason": None,
            "preprocess_prompt": None,
            "analyze_prompt": None,
            "generate_reason_prompt": None,
            "preprocess_step_result": _without_quotations(run.preprocess_step_result, names),
            "analyze_step_result": _without_quotations(run.analyze_step_result, names),
        }
    )


def _without_quotations(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _blanked(name, item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_quotations(item, names) for item in value]
    return value


def _blanked(name: str, value: Any, names: frozenset[str]) -> Any:
    if name == "reason":
        return None
    if name not in names:
        return _without_quotations(value, names)
    return [] if isinstance(value, list) else ""
