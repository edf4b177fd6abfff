"""Judge one run: the only way from a request to a score."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, ParamSpec, TypeVar

from app.domain.errors import AssayError
from app.domain.model import Model
from app.domain.request import Options, RunRequest, Scoring, StorePolicy, Strategy
from app.domain.run import Coverage, Run, RunStatus, RunWarning, Step
from app.judge.answers import Answers
from app.judge.evidence import Evidence, Window
from app.judge.expected import Judged, expected_on
from app.judge.explanation import Outcome, composed_reason, explanation_user, findings_of
from app.judge.language import fixed_sentence, told
from app.judge.questions import Question, Questions, can_be_scored, found_in, shared_by_all, verdicts_on
from app.judge.scorer import Extraction, Scorer
from app.judge.segment import Segment
from app.judge.step import Asker, side_by_side
from app.judge.subject import Subject
from app.judge.tally import Tally
from app.judge.task import Answer, explanation_task
from app.judge.verdict import Verdict
from app.ports import AnswerCache, ChatModel, Clock, Slot, Telemetry

OnStep = Callable[[Run, Step], Awaitable[None]]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

FALLBACK_MODEL = "fallback_model"
"""The code of the warning on a run that another model judged, or a part of it."""
NO_LOGPROBS = "no_logprobs"
"""The code of the warning on a run whose score should count probabilities that the judge did not tell."""
_LONG_TEXT = 5_000  # code points; cutting and planning more than this may take long enough to be noticed by other runs
NOTHING_JUDGED: dict[str, Any] = {
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
"""What a run is set back to before it is judged, since an attempt before may have left something."""
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


class _Plan(NamedTuple):
    """How one question is put: what its messages begin with, its windows, and its prompts as people are shown them."""

    preamble: str
    windows: list[Window]
    prompts: str


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
        self.run = run.model_copy(update=NOTHING_JUDGED)
        self.expected: list[Verdict] | None = None
        self.tally = Tally(model=judge.model.id, usage=run.usage)
        options = self.options.model_dump_json()
        texts = (request.text, request.question or "", request.ground_truth or "", *(request.context or ()))
        self.size = sum(map(len, (options, *texts, *(str(call.arguments) for call in request.tool_calls))))
        answers = Answers(
            cache=judge.cache,
            clock=judge.clock,
            deadline=deadline,
            about=self.about(scorer.id, scorer.version, options),
            run_id=run.run_id,
            mode=request.cache,
            kept=request.store is not StorePolicy.NONE,
            used_keys=cache_keys,
        )
        self.asker = Asker(scorer.id, judge.model, answers, judge.telemetry, self.tally, judge.slot)
        self.questions = Questions(
            request, self.options, scorer, judge.fence_key, judge.tenant, self.asker, self.asker_of
        )

    def asker_of(self, extraction: Extraction) -> Asker:
        """Return the asker of what belongs to no scorer: all runs of a request share its answers."""
        about = self.about(extraction.name, extraction.version, "")
        return shared_by_all(self.asker, about, self.request.group or self.run.run_id)

    def about(self, name: str, version: str, options: str) -> tuple[str, ...]:
        """Return what the keys of answers depend on beside the prompt."""
        return (self.judge.tenant, self.judge.model.identity, name, version, options, "0")

    async def judged(self) -> Run:
        inquiries = self.scorer.inquiries
        subjects = [await self.computed(inquiry.subject, self.request, self.options) for inquiry in inquiries]
        has_units = any(subject.units for subject in subjects)
        if self.options.strategy is Strategy.THREE_STEP:
            subjects = await self.preprocess(subjects)
        verdicts = await self.analyze(subjects) if can_be_scored(inquiries, subjects) else []
        counted = verdicts if self.expected is None else self.expected
        value = self.scorer.value(counted, self.options) if has_units else None
        if value is None:
            return self.updated(status=RunStatus.NOT_SCORABLE, reason=self.fixed(self.scorer.nothing_to_score))
        await self.explain(verdicts, subjects[0], self.scored(value, len(verdicts)))
        return self.updated(status=RunStatus.COMPLETED)

    async def computed(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return what function gives, computed in a thread where the text is long."""
        if self.size > _LONG_TEXT:
            return await asyncio.to_thread(function, *arguments, **named)
        return function(*arguments, **named)

    async def preprocess(self, subjects: Sequence[Subject]) -> list[Subject]:
        """Return the subjects with the units that matter, or with the statements found in their units."""
        inquiries = self.scorer.inquiries
        questions = {
            index: await self.computed(self.questions.for_preprocess, inquiry.preprocess, subjects[index])
            for index, inquiry in enumerate(inquiries)
            if inquiry.preprocess is not None and subjects[index].items
        }
        if not questions:
            return list(subjects)
        answers = dict(zip(questions, await self.ask(Step.PREPROCESS, list(questions.values())), strict=True))
        found = [
            inquiries[index].narrowed(found_in(subject, inquiries[index], answers[index]), self.options)
            if index in answers
            else subject
            for index, subject in enumerate(subjects)
        ]
        self.updated(
            preprocess_step_result=self.selected(
                [[subject.units[item] for item in subject.items] for subject in found]
            ),
            coverage=Coverage(asked=0, judged=0),
        )
        await self.on_step(self.run, Step.PREPROCESS)
        return found

    async def analyze(self, subjects: Sequence[Subject]) -> list[Verdict]:
        """Return the verdicts on the items of all subjects."""
        assessments = [inquiry.assessments[self.options.strategy] for inquiry in self.scorer.inquiries]
        questions = {
            index: await self.computed(self.questions.for_analyze, assessments[index], subject)
            for index, subject in enumerate(subjects)
            if subject.items
        }
        asked = await self.ask(Step.ANALYZE, list(questions.values())) if questions else []
        answers = dict(zip(questions, asked, strict=True))
        by_inquiry = [
            verdicts_on(subject, assessments[index], answers.get(index, {})) for index, subject in enumerate(subjects)
        ]
        if self.run.preprocess_step_result is None:
            self.updated(preprocess_step_result=self.selected([[v.item for v in verdicts] for verdicts in by_inquiry]))
        verdicts = [verdict for verdicts in by_inquiry for verdict in verdicts]
        analysis = self.scorer.assessed(verdicts)
        if self.options.scoring is Scoring.EXPECTED:
            analysis = self.expect(
                analysis,
                [Judged(subject, assessments[index], answers.get(index, {})) for index, subject in enumerate(subjects)],
            )
        self.updated(analyze_step_result=analysis.model_dump(mode="json"), coverage=self.tally.coverage)
        await self.on_step(self.run, Step.ANALYZE)
        return verdicts

    def expect(self, analysis: Model, judged: Sequence[Judged]) -> Model:
        """Keep what the formula is to count in the verdicts' place, and return the step result with what tells so."""
        expected = [expected_on(one) for one in judged]
        self.expected = [verdict for verdicts, _ in expected for verdict in verdicts]
        weighed = [unit for _, units in expected for unit in units]
        untold = sum(unit.probabilities is None for unit in weighed)
        if untold:
            detail = (
                f"The judge told no probabilities for {untold} of {len(weighed)} units, which count by their labels "
                "alone; use a judge that returns logprobs"
            )
            warning = RunWarning(code=NO_LOGPROBS, detail=detail, step=Step.ANALYZE)
            self.updated(warnings=[*self.run.warnings, warning])
        return analysis.model_copy(update={"weighed": weighed})

    async def ask(self, step: Step, questions: Sequence[Question[Answer]]) -> list[dict[int, list[Answer]]]:
        """Ask in windows, all questions at once; their prompts stand on the run before the first call."""
        with self.step(step, sum(len(question.items) for question in questions)):
            planned = [await self.computed(self.plan, question) for question in questions]
            self.updated(**{_PROMPT_FIELDS[step]: "\n\n".join(plan.prompts for plan in planned)})
            self.tally.answers_due = sum(len(window.items) for plan in planned for window in plan.windows)
            return await side_by_side(
                [
                    question.asker.ask_windows(question.task_of, question.evidence, plan.windows, plan.preamble)
                    for question, plan in zip(questions, planned, strict=True)
                ]
            )

    def plan(self, question: Question[Answer]) -> _Plan:
        """Return how a question is put."""
        asker, task, evidence = question.asker, question.widest, question.evidence
        language = told(self.options.language, "the lines with A:" if evidence.shows_output else "the numbered lines")
        preamble = f"Write reasons in {language}.\n" if task.reasons else ""
        windows = asker.plan(task, evidence, question.items, preamble)
        return _Plan(preamble, windows, asker.prompt_text(task, evidence, windows, preamble))

    def scored(self, value: float, judged: int) -> Outcome:
        """Put the score of a 0..1 value on the run."""
        told = self.scorer.score_of(value, self.options.scale, self.request.threshold)
        self.updated(**told)
        units = {inquiry.assessments[self.options.strategy].units for inquiry in self.scorer.inquiries}
        return Outcome(told["score"], told["interpretation"], judged, units.pop() if len(units) == 1 else "items")

    async def explain(self, verdicts: Sequence[Verdict], subject: Subject, outcome: Outcome) -> None:
        """Put the reason on the run, if one is wanted; without one the score still stands."""
        if not self.options.include_reason or self.options.strategy is Strategy.LABELS:
            return
        findings = findings_of(self.scorer, verdicts)
        if not findings:
            self.updated(reason=self.fixed(self.scorer.nothing_found))
        elif self.options.strategy is Strategy.SINGLE_CALL:
            self.updated(reason=composed_reason(self.scorer, findings))
        else:
            view = self.scorer.inquiries[0].assessments[self.options.strategy].view
            await self.generate_reason(findings, self.questions.evidence(subject, view), outcome)

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

    def selected(self, units: Sequence[Sequence[Segment]]) -> dict[str, Any] | None:
        """Return the preprocess step's result, for scorers that have one."""
        return None if self.scorer.selected is None else self.scorer.selected(*units).model_dump(mode="json")

    def fixed(self, sentences: Mapping[str, str]) -> str:
        """Return the sentence in the reason's language."""
        text = self.scorer.scored(self.request) or self.request.question or ""
        return fixed_sentence(sentences, self.options.language, text)

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
