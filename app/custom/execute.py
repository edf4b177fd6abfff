"""Judge one run with a custom scorer: the engine's cache, exchanges, windows and counts, and the definition's steps."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

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
from app.domain.errors import ContextOverflow
from app.domain.request import RunRequest, StorePolicy
from app.domain.run import Coverage, Run, RunStatus, RunWarning, Step
from app.judge.answers import Answers
from app.judge.askers import Judge
from app.judge.exchange import prompt_for
from app.judge.language import fixed_sentence
from app.judge.scorer import NOTHING_TO_SCORE
from app.judge.step import Asker
from app.judge.subject import Subject, output_segments
from app.judge.task import Task
from app.judge.trial import PROMPT_FIELDS, OnStep, StepFailed, Trial

Answer = TypeVar("Answer")

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
    except StepFailed as failed:
        return trial.failed(failed)


class _Trial(Trial):
    """One run under judgement by a scorer that is data."""

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
        super().__init__(run, request, scorer, judge, on_step)
        self.scorer = scorer
        self.size = len(request.text)
        self.steps = Steps(scorer, self.options, fences(judge.fence_key, judge.tenant))
        about = (scorer.id, scorer.version, scorer.definition.digest, self.options.model_dump_json(exclude={"samples"}))
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
        except StepFailed as failed:
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

    def fixed(self, sentences: Mapping[str, str]) -> str:
        """Return the sentence in the reason's language."""
        return fixed_sentence(sentences, self.options.language, self.request.text)
