"""What every run under judgement does: keep what is known of it, time its steps, and end with what they found."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from app.domain.errors import AssayError
from app.domain.request import Options, RunRequest
from app.domain.run import Run, RunStatus, RunWarning, Step
from app.judge.askers import Judge
from app.judge.scorer import Measure
from app.judge.tally import Tally

OnStep = Callable[[Run, Step], Awaitable[None]]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

FALLBACK_MODEL = "fallback_model"
"""The code of the warning on a run that another model judged, or a part of it."""
_LONG_TEXT = 5_000  # code points; cutting and planning more than this may take long enough to be noticed by other runs
NOTHING_JUDGED: dict[str, Any] = {
    "status": RunStatus.RUNNING,
    "score": None,
    "score_interval": None,
    "interpretation": None,
    "passed": None,
    "uncertain": False,
    "reason": None,
    "coverage": None,
    "preprocess_step_result": None,
    "preprocess_prompt": None,
    "analyze_step_result": None,
    "analyze_prompt": None,
    "generate_reason_prompt": None,
    "agreement": None,
    "panel": None,
    "warnings": [],
    "error": None,
}
"""What a run is set back to before it is judged, since an attempt before may have left something."""
PROMPT_FIELDS = {Step.PREPROCESS: "preprocess_prompt", Step.ANALYZE: "analyze_prompt"}
TIMING_FIELDS = {
    Step.PREPROCESS: "preprocess_ms",
    Step.ANALYZE: "analyze_ms",
    Step.GENERATE_REASON: "generate_reason_ms",
}


class StepFailed(Exception):
    """A step ended with an error."""

    def __init__(self, step: str, error: AssayError) -> None:
        super().__init__(step)
        self.step = step
        self.error = error


class Trial:
    """One run under judgement: `run` is what is known of it so far, `size` the length of its texts in code points."""

    size: int

    def __init__(self, run: Run, request: RunRequest, scorer: Measure, judge: Judge, on_step: OnStep) -> None:
        self.request = request
        self.scorer_id = scorer.id
        self.judge = judge
        self.on_step = on_step
        self.options: Options = scorer.options.model_validate(request.options)
        self.run = run.model_copy(update=NOTHING_JUDGED)
        self.tally = Tally(judge.model.id, judge.model.id, usage=run.usage)

    async def computed(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return what function gives, computed in a thread where the text is long."""
        if self.size > _LONG_TEXT:
            return await asyncio.to_thread(function, *arguments, **named)
        return function(*arguments, **named)

    def failed(self, failed: StepFailed) -> Run:
        """Return the run as it ends by a failed step: no score, but all that was found before."""
        return self.updated(
            status=RunStatus.FAILED, coverage=self.tally.coverage, error=failed.error.as_run_error(failed.step)
        )

    @contextmanager
    def failing(self, step: str) -> Iterator[None]:
        """Name the step that an AssayError belongs to."""
        try:
            yield
        except AssayError as error:
            raise StepFailed(step, error) from error

    @contextmanager
    def step(self, step: Step, asked: int) -> Iterator[None]:
        """Time and count a step about so many items; an AssayError in it becomes StepFailed."""
        clock = self.judge.clock
        started = clock.monotonic()
        self.tally.begin_step(asked)
        try:
            with self.failing(step):
                yield
        finally:
            seconds = clock.monotonic() - started
            timings = self.run.timings.model_copy(update={TIMING_FIELDS[step]: round(seconds * 1000, 3)})
            self.updated(timings=timings, usage=self.tally.usage, model=self.tally.model, warnings=self.warnings())
        self.judge.telemetry.step_finished(self.scorer_id, step, self.tally.source, seconds)

    def warnings(self) -> list[RunWarning]:
        """Return the run's warnings, with those that name the other models that answered in a judge's place."""
        warnings = [warning for warning in self.run.warnings if warning.code != FALLBACK_MODEL]
        for judge, models in self.tally.answered_by.items():
            if others := sorted(models - {judge}):
                detail = f"{judge} was not available; {', '.join(others)} answered in its place"
                warnings.append(RunWarning(code=FALLBACK_MODEL, detail=detail))
        return warnings

    def updated(self, **fields: Any) -> Run:
        """Put these fields on the run and return it."""
        self.run = self.run.model_copy(update=fields)
        return self.run
