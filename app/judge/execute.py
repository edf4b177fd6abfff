"""Judge one run: the only way from a request to a score."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from app.domain.errors import AssayError
from app.domain.request import Options, RunRequest, StorePolicy, Strategy
from app.domain.run import Coverage, Run, RunStatus, RunWarning, Step
from app.domain.scoring import passed, scaled
from app.judge.answers import Answers
from app.judge.evidence import Evidence
from app.judge.explanation import Outcome, composed_reason, explanation_user, findings_of
from app.judge.fence import fence_of
from app.judge.language import fixed_sentence, told
from app.judge.scorer import Assessment, Scorer, Selection, Verdict
from app.judge.segment import Segment, segments_of
from app.judge.step import Asker
from app.judge.tally import Tally
from app.judge.task import Answer, Task, assessment_task, explanation_task, selection_task
from app.ports import AnswerCache, ChatModel, Clock, Slot, Telemetry

OnStep = Callable[[Run, Step], Awaitable[None]]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

FALLBACK_MODEL = "fallback_model"
"""The code of the warning on a run that another model judged, or a part of it."""
_LONG_TEXT = 5_000  # code points; cutting and planning more than this may take long enough to be noticed by other runs
_NOTHING_JUDGED: dict[str, Any] = {
    "status": RunStatus.RUNNING,
    "score": None,
    "interpretation": None,
    "passed": None,
    "reason": None,
    "coverage": None,
    "preprocess_step_result": None,
    "preprocess_prompt": None,
    "analyze_step_result": None,
    "analyze_prompt": None,
    "generate_reason_prompt": None,
    "warnings": [],
    "error": None,
}
_PROMPT_FIELDS = {Step.PREPROCESS: "preprocess_prompt", Step.ANALYZE: "analyze_prompt"}
_TIMING_FIELDS = {
    Step.PREPROCESS: "preprocess_ms",
    Step.ANALYZE: "analyze_ms",
    Step.GENERATE_REASON: "generate_reason_ms",
}


@dataclass(frozen=True, slots=True)
class Judge:
    """Who judges, for whom, and with what at hand."""

    model: ChatModel
    cache: AnswerCache
    tenant: str
    fence_key: bytes
    clock: Clock
    telemetry: Telemetry
    slot: Slot | None = None


async def judge_run(
    run: Run,
    request: RunRequest,
    scorer: Scorer,
    judge: Judge,
    *,
    deadline: float,
    on_step: OnStep,
    cache_keys: list[str],
) -> Run:
    """Return the run with every judged field filled in, its status completed, failed or not_scorable.

    `deadline` is on the clock's monotonic scale. `on_step` is awaited after each finished step with the run so far.
    `cache_keys` gets every key that answers may be stored under, whatever becomes of the run. A judge that fails makes
    a failed run and no exception; what on_step raises, and bugs, pass through.
    """
    trial = _Trial(run, request, scorer, judge, deadline, on_step, cache_keys)
    try:
        return await trial.judged()
    except _StepFailed as failed:
        return trial.failed(failed)


class _StepFailed(Exception):
    def __init__(self, step: Step, error: AssayError) -> None:
        super().__init__(step)
        self.step = step
        self.error = error


class _Trial:
    """One run under judgement: `run` is what is known of it so far."""

    def __init__(
        self,
        run: Run,
        request: RunRequest,
        scorer: Scorer,
        judge: Judge,
        deadline: float,
        on_step: OnStep,
        cache_keys: list[str],
    ) -> None:
        self.request = request
        self.scorer = scorer
        self.judge = judge
        self.on_step = on_step
        self.options: Options = scorer.options.model_validate(request.options)
        self.run = run.model_copy(update=_NOTHING_JUDGED)
        self.tally = Tally(model=judge.model.id, usage=run.usage)
        about = (judge.tenant, judge.model.identity, scorer.id, scorer.version, self.options.model_dump_json(), "0")
        answers = Answers(
            cache=judge.cache,
            clock=judge.clock,
            deadline=deadline,
            about=about,
            run_id=run.run_id,
            mode=request.cache,
            kept=request.store is not StorePolicy.NONE,
            used_keys=cache_keys,
        )
        self.asker = Asker(scorer.id, judge.model, answers, judge.telemetry, self.tally, judge.slot)

    async def judged(self) -> Run:
        text = self.request.text
        segments = await self.computed(segments_of, text)
        fence = fence_of(self.judge.fence_key, self.judge.tenant, text)
        evidence = await self.computed(Evidence, fence, segments, self.request.question)
        items: Sequence[int] = range(len(segments))
        selection = self.scorer.selection
        if selection is not None and self.options.strategy is Strategy.THREE_STEP:
            items = await self.preprocess(selection, evidence, items)
        verdicts = await self.analyze(self.scorer.assessments[self.options.strategy], evidence, items) if items else []
        value = self.scorer.value(verdicts, self.options) if segments else None
        if value is None:
            return self.updated(status=RunStatus.NOT_SCORABLE, reason=self.nothing_found())
        await self.explain(verdicts, evidence, self.scored(value, len(verdicts)))
        return self.updated(status=RunStatus.COMPLETED)

    async def computed(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return what function gives, computed in a thread where the text is long."""
        if len(self.request.text) + len(self.request.question or "") > _LONG_TEXT:
            return await asyncio.to_thread(function, *arguments, **named)
        return function(*arguments, **named)

    async def preprocess(self, selection: Selection, evidence: Evidence, items: Sequence[int]) -> list[int]:
        """Return the indexes of the segments that matter."""
        task = selection_task(self.scorer, selection)
        answers = await self.ask(task, evidence, items)
        chosen = [index for index in items if answers[index]]
        self.updated(
            preprocess_step_result=self.selected([evidence.segments[index] for index in chosen]),
            coverage=Coverage(asked=0, judged=0),
        )
        await self.on_step(self.run, task.step)
        return chosen

    async def analyze(self, assessment: Assessment, evidence: Evidence, items: Sequence[int]) -> list[Verdict]:
        """Return the verdicts on items, without those that turned out to be none."""
        task = assessment_task(self.scorer, assessment)
        answers = await self.ask(task, evidence, items)
        verdicts = [
            Verdict(evidence.segments[index], labels, answers[index].reason)
            for index in items
            if (labels := assessment.read(answers[index].labels)) is not None
        ]
        if self.run.preprocess_step_result is None:
            self.updated(preprocess_step_result=self.selected([verdict.item for verdict in verdicts]))
        self.updated(
            analyze_step_result=self.scorer.assessed(verdicts).model_dump(mode="json"), coverage=self.tally.coverage
        )
        await self.on_step(self.run, task.step)
        return verdicts

    async def ask(self, task: Task[Answer], evidence: Evidence, items: Sequence[int]) -> dict[int, Answer]:
        """Ask about items in windows; their prompts stand on the run before the first call."""
        preamble = f"Write reasons in {told(self.options.language)}.\n" if task.reasons else ""
        with self.step(task.step, len(items)):
            windows = await self.computed(self.asker.plan, task, evidence, items, preamble)
            prompts = await self.computed(self.asker.prompt_text, task, evidence, windows, preamble)
            self.updated(**{_PROMPT_FIELDS[task.step]: prompts})
            return await self.asker.ask_windows(task, evidence, windows, preamble)

    def scored(self, value: float, judged: int) -> Outcome:
        """Put the score of a 0..1 value on the run."""
        score = scaled(value, self.options.scale)
        interpretation = self.scorer.interpret(scaled(value, 1.0))
        threshold = self.request.threshold
        self.updated(
            score=score,
            interpretation=interpretation,
            passed=None if threshold is None else passed(score, threshold, self.scorer.direction),
        )
        return Outcome(score, interpretation, judged)

    async def explain(self, verdicts: Sequence[Verdict], evidence: Evidence, outcome: Outcome) -> None:
        """Put the reason on the run, if one is wanted; without one the score still stands."""
        if not self.options.include_reason or self.options.strategy is Strategy.LABELS:
            return
        findings = findings_of(self.scorer, verdicts)
        if not findings:
            self.updated(reason=self.nothing_found())
        elif self.options.strategy is Strategy.SINGLE_CALL:
            self.updated(reason=composed_reason(self.scorer, findings))
        else:
            await self.generate_reason(findings, evidence, outcome)

    async def generate_reason(self, findings: Sequence[Verdict], evidence: Evidence, outcome: Outcome) -> None:
        """Ask the judge for the reason; when it fails, the run keeps its score and gets a warning."""
        task = explanation_task(self.scorer)
        try:
            with self.step(task.step, 1):
                user = explanation_user(self.scorer, findings, outcome, self.options, evidence, task, self.judge.model)
                self.updated(generate_reason_prompt=f"{task.system}\n\n{user}")
                answers = await self.asker.ask(task, (1,), lambda _: user)
        except _StepFailed as failed:
            warning = RunWarning(code=failed.error.code, detail=failed.error.detail, step=failed.step)
            self.updated(warnings=[*self.run.warnings, warning])
            return
        self.updated(reason=answers[1])
        await self.on_step(self.run, task.step)

    def selected(self, segments: Sequence[Segment]) -> dict[str, Any] | None:
        """Return the preprocess step's result, for scorers that have one."""
        return None if self.scorer.selected is None else self.scorer.selected(segments).model_dump(mode="json")

    def nothing_found(self) -> str:
        """Return the reason of a run in which nothing was found."""
        return fixed_sentence(self.scorer.nothing_found, self.options.language, self.request.text)

    def failed(self, failed: _StepFailed) -> Run:
        """Return the run as it ends by a failed step: no score, but all that was found before."""
        return self.updated(
            status=RunStatus.FAILED, coverage=self.tally.coverage, error=failed.error.as_run_error(failed.step)
        )

    @contextmanager
    def step(self, step: Step, asked: int) -> Iterator[None]:
        """Time and count a step about so many items; an AssayError in it becomes _StepFailed."""
        clock = self.judge.clock
        started = clock.monotonic()
        self.tally.begin_step(asked)
        try:
            yield
        except AssayError as error:
            raise _StepFailed(step, error) from error
        finally:
            seconds = clock.monotonic() - started
            timings = self.run.timings.model_copy(update={_TIMING_FIELDS[step]: round(seconds * 1000, 3)})
            self.updated(timings=timings, usage=self.tally.usage, model=self.tally.model, warnings=self.warnings())
        self.judge.telemetry.step_finished(self.scorer.id, step, self.tally.source, seconds)

    def warnings(self) -> list[RunWarning]:
        """Return the run's warnings, with one that names the other models that answered in the judge's place."""
        others = sorted(self.tally.answered_by - {self.judge.model.id})
        warnings = [warning for warning in self.run.warnings if warning.code != FALLBACK_MODEL]
        if others:
            detail = f"{self.judge.model.id} was not available; {', '.join(others)} answered in its place"
            warnings.append(RunWarning(code=FALLBACK_MODEL, detail=detail))
        return warnings

    def updated(self, **fields: Any) -> Run:
        """Put these fields on the run and return it."""
        self.run = self.run.model_copy(update=fields)
        return self.run
