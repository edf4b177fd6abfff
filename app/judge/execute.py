"""Judge one run: the only way from a request to a score."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from app.domain.request import RunRequest, Strategy
from app.domain.run import Coverage, Run, RunStatus, RunWarning, Step
from app.judge.askers import Askers, Judge
from app.judge.asking import answered, planned
from app.judge.evidence import Evidence
from app.judge.explanation import Outcome, composed_reason, explanation_user, findings_of
from app.judge.judgement import Judgement, judgement_of
from app.judge.language import fixed_sentence
from app.judge.panel import agreed, interval_of, voter, with_doubt
from app.judge.questions import Question, Questions, can_be_scored, found_in
from app.judge.scorer import Scorer
from app.judge.segment import Segment
from app.judge.subject import Subject
from app.judge.task import explanation_task
from app.judge.trial import PROMPT_FIELDS, OnStep, StepFailed, Trial
from app.judge.verdict import Verdict


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
    except StepFailed as failed:
        return trial.failed(failed)


class _Trial(Trial):
    """One run under judgement by a scorer of the engine's."""

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
        super().__init__(run, request, scorer, judge, on_step)
        self.scorer = scorer
        texts = (request.text, request.question or "", request.ground_truth or "", *(request.context or ()))
        calls = (str(call.arguments) for call in request.tool_calls)
        self.size = sum(map(len, (self.options.model_dump_json(), *texts, *calls)))
        self.askers = Askers(judge, scorer, self.options, request, run.run_id, self.tally, deadline, cache_keys)
        self.questions = Questions(request, self.options, scorer, judge.fence_key, judge.tenant, self.askers)

    async def judged(self) -> Run:
        inquiries = self.scorer.inquiries
        subjects = [await self.computed(inquiry.subject, self.request, self.options) for inquiry in inquiries]
        has_units = any(subject.units for subject in subjects)
        if self.options.strategy is Strategy.THREE_STEP:
            subjects = await self.preprocess(subjects)
        judgement = await self.analyze(subjects) if can_be_scored(inquiries, subjects) else Judgement()
        value = self.scorer.value(judgement.counted, self.options) if has_units else None
        if value is None:
            return self.updated(status=RunStatus.NOT_SCORABLE, reason=self.fixed(self.scorer.nothing_to_score))
        await self.explain(judgement.verdicts, subjects[0], await self.scored(value, judgement))
        return self.updated(status=RunStatus.COMPLETED)

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
        asked = zip(questions, await self.ask(Step.PREPROCESS, list(questions.values())), strict=True)
        answers = {index: answer for index, (answer,) in asked}
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

    async def analyze(self, subjects: Sequence[Subject]) -> Judgement:
        """Return the judgement on the items of all subjects."""
        assessments = [inquiry.assessments[self.options.strategy] for inquiry in self.scorer.inquiries]
        questions = {
            index: await self.computed(self.questions.for_analyze, assessments[index], subject)
            for index, subject in enumerate(subjects)
            if subject.items
        }
        asked = await self.ask(Step.ANALYZE, list(questions.values())) if questions else []
        answers = dict(zip(questions, asked, strict=True))
        voters = [voter(voice) for voice in self.askers.voices]
        judgement = await self.computed(judgement_of, subjects, assessments, answers, voters, self.options.scoring)
        if self.run.preprocess_step_result is None:
            units = [[verdict.item for verdict in verdicts] for verdicts in judgement.by_inquiry]
            self.updated(preprocess_step_result=self.selected(units))
        self.updated(
            analyze_step_result=judgement.analysis(self.scorer).model_dump(mode="json"),
            coverage=self.tally.coverage,
            warnings=[*self.run.warnings, *judgement.warnings],
            **await self.computed(agreed, judgement, self.judge.models, self.scorer, self.options),
        )
        await self.on_step(self.run, Step.ANALYZE)
        return judgement

    async def ask(self, step: Step, questions: Sequence[Question[Any]]) -> list[list[dict[int, list[Any]]]]:
        """Ask in windows, all questions of all their askers at once, and return the answers by question and asker.

        The prompts stand on the run before the first call.
        """
        with self.step(step, sum(len(question.items) for question in questions)):
            puts = await planned(questions, self.options.language, self.computed)
            prompts = dict.fromkeys(put.plan.prompts for put in puts)
            self.updated(**{PROMPT_FIELDS[step]: "\n\n".join(prompts)})
            self.tally.answers_due = sum(len(window.items) for put in puts for window in put.plan.windows)
            answers = iter(await answered(puts))
            return [list(islice(answers, len(question.askers))) for question in questions]

    async def scored(self, value: float, judgement: Judgement) -> Outcome:
        """Put the score of a 0..1 value on the run, and how sure it is."""
        told = self.scorer.score_of(value, self.options.scale, self.request.threshold)
        if judgement.basis is not None:
            interval = await asyncio.to_thread(
                interval_of, judgement, judgement.basis, value, self.scorer, self.options
            )
            told = with_doubt(told, interval, self.request.threshold, self.scorer.direction)
        self.updated(**told)
        kinds = {inquiry.assessments[self.options.strategy].units for inquiry in self.scorer.inquiries}
        units = kinds.pop() if len(kinds) == 1 else "items"
        return Outcome(told["score"], told["interpretation"], len(judgement.verdicts), units)

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
                answers = await self.askers.own.ask(task, (1,), lambda _: user)
        except StepFailed as failed:
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
