"""Judge one run with a custom scorer: the engine's cache, exchanges, windows and counts, and the definition's steps."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from app.custom.compiled import Asking, CustomScorer
from app.custom.material import Material
from app.custom.steps import (
    MOST_EXPLAINED,
    Steps,
    fences,
    listed_items,
    refuse_too_many,
    selected,
    verdicts_result,
)
from app.custom.template import Template
from app.domain.errors import AssayError, ContextOverflow
from app.domain.request import Options, RunRequest, StorePolicy
from app.domain.run import Coverage, Run, RunStatus, RunWarning, Step
from app.judge.answers import Answers
from app.judge.exchange import prompt_for
from app.judge.execute import FALLBACK_MODEL, NOTHING_JUDGED, PROMPT_FIELDS, TIMING_FIELDS, Judge, OnStep
from app.judge.language import fixed_sentence
from app.judge.scorer import NOTHING_TO_SCORE
from app.judge.step import Asker
from app.judge.subject import Subject, output_segments
from app.judge.tally import Tally
from app.judge.task import Task

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

NOTHING_FOUND = {
    "en": "Nothing was found in this text that would have to be judged.",
    "fr": "Rien n’a été trouvé dans ce texte qui aurait dû être évalué.",
    "ko": "이 글에서 평가해야 할 내용이 발견되지 않았습니다.",
    "ja": "このテキストには評価すべき内容が見つかりませんでした。",
    "de": "In diesem Text fand sich nichts, was zu beurteilen wäre.",
    "es": "No se encontró en este texto nada que hubiera que evaluar.",
    "pt": "Não se encontrou neste texto nada que tivesse de ser avaliado.",
    "zh": "这段文本中没有发现需要评判的内容。",
}
"""The reason of a score that was given without any verdict."""
SCORE_STEP = "generateScore"
_LONG_TEXT = 5_000


async def judge_custom(
    run: Run,
    request: RunRequest,
    scorer: CustomScorer,
    judge: Judge,
    *,
    deadline: float,
    on_step: OnStep,
    cache_keys: list[str],
) -> Run:
    """Return the run with every judged field filled in, as `app.judge.execute.judge_run` does."""
    trial = _Trial(run, request, scorer, judge, deadline, on_step, cache_keys)
    try:
        return await trial.judged()
    except _StepFailed as failed:
        return trial.failed(failed)


class _StepFailed(Exception):
    def __init__(self, step: str, error: AssayError) -> None:
        super().__init__(step)
        self.step = step
        self.error = error


class _Trial:
    """One run under judgement: `run` is what is known of it so far."""

    def __init__(
        self,
        run: Run,
        request: RunRequest,
        scorer: CustomScorer,
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
        self.tally = Tally(model=judge.model.id, usage=run.usage)
        self.steps = Steps(scorer, self.options, fences(judge.fence_key, judge.tenant))
        about = (scorer.id, scorer.version, scorer.definition.digest, self.options.model_dump_json())
        answers = Answers(
            cache=judge.cache,
            clock=judge.clock,
            deadline=deadline,
            about=(judge.tenant, judge.model.identity, *about, "0"),
            run_id=run.run_id,
            mode=request.cache,
            kept=request.store is not StorePolicy.NONE,
            used_keys=cache_keys,
        )
        self.asker = Asker(scorer.id, judge.model, answers, judge.telemetry, self.tally, judge.slot)

    async def judged(self) -> Run:
        subject = await self.computed(output_segments, self.request, self.options)
        segments = len(subject.units)
        with self.failing(Step.PREPROCESS if self.scorer.preprocess else Step.ANALYZE):
            material = self.steps.material(self.request, self.run.metadata)
        if self.scorer.preprocess is not None:
            material, found = await self.preprocess(self.scorer.preprocess, material, subject)
            subject = subject if self.scorer.definition.analyze.for_each == "segments" else found
        material = await self.analyze(material, subject)
        with self.failing(SCORE_STEP):
            value = self.steps.value(material, segments)
        if value is None:
            return self.updated(status=RunStatus.NOT_SCORABLE, reason=self.fixed(NOTHING_TO_SCORE))
        self.updated(**self.scorer.score_of(value, self.options.scale, self.request.threshold))
        await self.explain(material, subject)
        return self.updated(status=RunStatus.COMPLETED)

    async def preprocess(self, step: Asking, material: Material, subject: Subject) -> tuple[Material, Subject]:
        """Return what the first step gives: the material of the next, and the items that it found."""
        if step.select is None:
            finding = partial(self.steps.found, step, material)
            answer = await self.ask_once(Step.PREPROCESS, finding, step.instructions, material)
            result, found = answer, listed_items(step, answer)
        else:
            selecting = partial(self.steps.selection, step, material)
            chosen = await self.ask_each(Step.PREPROCESS, selecting, step, material, subject)
            found = subject._replace(items=[index for index in subject.items if chosen[index]])
            units = [subject.units[index] for index in found.items]
            answer, result = {step.select: [unit.text for unit in units]}, selected(step.select, units)
        self.updated(preprocess_step_result=result, coverage=Coverage(asked=0, judged=0))
        await self.on_step(self.run, Step.PREPROCESS)
        return self.steps.after_preprocess(material, step, answer), found

    async def analyze(self, material: Material, subject: Subject) -> Material:
        """Return the material with the second step's result."""
        step, task_of = self.scorer.analyze, partial(self.steps.analysis, material)
        if self.scorer.definition.analyze.for_each is None:
            result = await self.ask_once(Step.ANALYZE, task_of, step.instructions, material)
        elif subject.items:
            answers = await self.ask_each(Step.ANALYZE, task_of, step, material, subject)
            result = verdicts_result(subject, answers)
        else:
            self.tally.begin_step(0)
            result = verdicts_result(subject, {})
        self.updated(analyze_step_result=result, coverage=self.tally.coverage)
        await self.on_step(self.run, Step.ANALYZE)
        return self.steps.after_analyze(material, result)

    async def ask_once(
        self, step: Step, task_of: Callable[[], Task[Answer]], instructions: Template, material: Material
    ) -> Answer:
        """Return the answer to one question about everything that the instructions mention."""
        with self.step(step, 1):
            task = task_of()
            message = await self.computed(self.steps.message, instructions, material)
            self.updated(**{PROMPT_FIELDS[step]: f"{task.system}\n\n{message}"})
            return (await self.asker.ask(task, (1,), lambda _: message))[1]

    async def ask_each(
        self, step: Step, task_of: Callable[[], Task[Answer]], asking: Asking, material: Material, subject: Subject
    ) -> dict[int, Answer]:
        """Return the answers about a subject's items by their index, asked for in windows."""
        with self.step(step, len(subject.items)):
            refuse_too_many(subject)
            task, preamble = task_of(), self.steps.preamble
            evidence = await self.computed(self.steps.evidence, asking, material, subject)
            windows = await self.computed(self.asker.plan, task, evidence, subject.items, preamble)
            self.updated(**{PROMPT_FIELDS[step]: self.asker.prompt_text(task, evidence, windows, preamble)})
            answers = await self.asker.ask_windows(lambda _: task, evidence, windows, preamble)
            return {index: answer for index, (answer,) in answers.items()}

    async def explain(self, material: Material, subject: Subject) -> None:
        """Put the reason on the run, if one is wanted and described; without one the score still stands."""
        if not self.options.include_reason or self.scorer.reason is None:
            return
        if self.scorer.definition.analyze.for_each is not None and not subject.items:
            self.updated(reason=self.fixed(NOTHING_FOUND))
            return
        try:
            with self.step(Step.GENERATE_REASON, 1):
                task = self.steps.reason(material)
                message = self.reason_message(task, material)
                self.updated(generate_reason_prompt=f"{task.system}\n\n{message}")
                answers = await self.asker.ask(task, (1,), lambda _: message)
        except _StepFailed as failed:
            warning = RunWarning(code=failed.error.code, detail=failed.error.detail, step=Step.GENERATE_REASON)
            self.updated(warnings=[*self.run.warnings, warning])
            return
        self.updated(reason=answers[1])
        await self.on_step(self.run, Step.GENERATE_REASON)

    def reason_message(self, task: Task[str], material: Material) -> str:
        """Return the message that asks for the reason, with as many verdicts as fit the judge's context."""
        shown = MOST_EXPLAINED
        while True:
            message = self.steps.reason_message(material, self.run.score, self.run.interpretation, shown)
            try:
                prompt_for(task, self.judge.model, message, (1,))
            except ContextOverflow:
                if shown == 1:
                    raise
                shown //= 2
            else:
                return message

    async def computed(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return what function gives, computed in a thread where the text is long."""
        if len(self.request.text) > _LONG_TEXT:
            return await asyncio.to_thread(function, *arguments, **named)
        return function(*arguments, **named)

    def fixed(self, sentences: Mapping[str, str]) -> str:
        """Return the sentence in the reason's language."""
        return fixed_sentence(sentences, self.options.language, self.request.text)

    def failed(self, failed: _StepFailed) -> Run:
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
            raise _StepFailed(step, error) from error

    @contextmanager
    def step(self, step: Step, asked: int) -> Iterator[None]:
        """Time and count a step about so many items; an AssayError in it becomes _StepFailed."""
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
