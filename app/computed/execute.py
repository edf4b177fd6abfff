"""Run a scorer that needs no judge: the same run as a judged one, with the judge's fields left empty."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Final

from app.computed.scorer import ComputedScorer, Inputs, Result
from app.domain.request import Options, RunRequest
from app.domain.run import Coverage, Run, RunStatus, Step
from app.judge.language import fixed_sentence
from app.judge.trial import NOTHING_JUDGED
from app.ports import Clock, Telemetry

COMPUTED: Final = "computed"
"""Where the step's result came from, for telemetry."""
SHORT: Final = 1_000
"""Code points of all texts together that are computed in place: a few milliseconds."""


async def compute_run(
    run: Run,
    request: RunRequest,
    scorer: ComputedScorer,
    *,
    clock: Clock,
    telemetry: Telemetry,
    pool: Executor,
    on_step: Callable[[Run, Step], Awaitable[None]],
) -> Run:
    """Return the run completed or not_scorable; longer texts are computed on a thread of pool.

    `on_step` is awaited when the score stands. What it raises, and bugs, pass through.
    """
    options = scorer.options.model_validate(request.options)
    inputs = Inputs(request.text, request.question, request.ground_truth)
    started = clock.monotonic()
    if sum(len(text or "") for text in inputs) <= SHORT:
        ended = _computed(run, request, scorer, inputs, options)
    else:
        # The pool's few threads bound what long texts take from everybody else, also after their runs have expired.
        loop = asyncio.get_running_loop()
        ended = await loop.run_in_executor(pool, _computed, run, request, scorer, inputs, options)
    seconds = clock.monotonic() - started
    timings = run.timings.model_copy(update={"analyze_ms": round(seconds * 1000, 3)})
    ended = ended.model_copy(update={"timings": timings})
    telemetry.step_finished(scorer.id, Step.ANALYZE, COMPUTED, seconds)
    await on_step(ended.model_copy(update={"status": run.status}), Step.ANALYZE)
    return ended


def _computed(run: Run, request: RunRequest, scorer: ComputedScorer, inputs: Inputs, options: Options) -> Run:
    result = scorer.compute(inputs, options)
    fields = NOTHING_JUDGED | {
        "status": RunStatus.NOT_SCORABLE if result.value is None else RunStatus.COMPLETED,
        "analyze_step_result": result.analysis.model_dump(mode="json"),
        "coverage": Coverage(asked=result.items, judged=result.items),
        "model": None,
    }
    if options.include_reason or result.value is None:
        fields["reason"] = _reason(scorer, result, options, inputs.output)
    if result.value is not None:
        fields |= scorer.score_of(result.value, options.scale, request.threshold)
    return run.model_copy(update=fields)


def _reason(scorer: ComputedScorer, result: Result, options: Options, text: str) -> str:
    return fixed_sentence(scorer.reasons[result.sentence], options.language, text).format(**result.facts)
