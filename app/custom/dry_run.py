"""Try a definition on an example: what its judge would be shown, and the score of given replies. No judge is asked."""

from collections.abc import Mapping
from typing import Any, Final, Literal, NoReturn

from pydantic import ValidationError

from app.custom.compiled import ANALYZE_RESULT, PREPROCESS_RESULT, Asking, CustomScorer
from app.custom.definition import Example
from app.custom.material import Material
from app.custom.reading import Misfit, objects_in, read
from app.custom.steps import MOST_EXPLAINED, Steps, fences, listed_items, selected, verdicts_result
from app.domain.errors import Fault, InvalidRequest, ScorerFault, WrongReply
from app.domain.faults import faults_of, pointer
from app.domain.model import Model
from app.domain.request import RunRequest
from app.judge.evidence import Room
from app.judge.step import user_message
from app.judge.subject import Subject, output_segments
from app.judge.task import Task

_ROOMY: Final = Room(tokens=1 << 40, per_item=0, items=1 << 20)
_EXAMPLE: Final = "#/example"
_KEY: Final = b"the fence of an example keeps nothing apart"


class DryRun(Model):
    """What a form shows of a definition that was tried on an example.

    Prompts are null for steps that would not be asked. `score` (0..1) and `interpretation` are null when the formula
    gives null (`not_scorable`).
    """

    status: Literal["completed", "not_scorable"]
    score: float | None
    interpretation: str | None
    preprocess_prompt: str | None
    analyze_prompt: str | None
    generate_reason_prompt: str | None
    preprocess_step_result: dict[str, Any] | None
    analyze_step_result: dict[str, Any]


def dry_run(scorer: CustomScorer, example: Example) -> DryRun:
    """Return what a run over the example would show, had the judge replied as the example says.

    Raises InvalidRequest with faults whose pointers begin with `#/example`, or with `#/score` when the formula gives
    something else than a number from 0 to 1 or null.
    """
    try:
        return _Rehearsal(scorer, example).result()
    except ScorerFault as fault:
        place = "#/score" if fault.of_formula else _EXAMPLE
        _refuse(place, "definition", fault.detail)


class _Rehearsal:
    """One example on its way through the steps."""

    def __init__(self, scorer: CustomScorer, example: Example) -> None:
        self.scorer = scorer
        self.example = example
        try:
            self.options = scorer.options.model_validate(example.options)
        except ValidationError as error:
            faults = faults_of(error, example.options, f"{_EXAMPLE}/options")
            raise InvalidRequest("The example's options do not fit the definition", faults) from None
        self.steps = Steps(scorer, self.options, fences(_KEY, ""))
        self.preprocess_prompt: str | None = None
        self.preprocess_result: dict[str, Any] | None = None

    def result(self) -> DryRun:
        request = self.request()
        subject = output_segments(request, self.options)
        segments = len(subject.units)
        material = self.steps.material(request, self.example.metadata)
        if self.scorer.preprocess is not None:
            material, found = self.preprocess(self.scorer.preprocess, material, subject)
            subject = subject if self.scorer.definition.analyze.for_each == "segments" else found
        analyze_prompt, analyzed = self.analyze(material, subject)
        material = self.steps.after_analyze(material, analyzed)
        value = self.steps.value(material, segments)
        told: Mapping[str, Any] = {"score": None, "interpretation": None}
        if value is not None:
            told = self.scorer.score_of(value, 1.0, None)
        reason_prompt = None
        if value is not None and self.scorer.reason is not None:
            message = self.steps.reason_message(material, told["score"], told["interpretation"], MOST_EXPLAINED)
            reason_prompt = f"{self.steps.reason(material).system}\n\n{message}"
        return DryRun(
            status="not_scorable" if value is None else "completed",
            score=told["score"],
            interpretation=told["interpretation"],
            preprocess_prompt=self.preprocess_prompt,
            analyze_prompt=analyze_prompt,
            generate_reason_prompt=reason_prompt,
            preprocess_step_result=self.preprocess_result,
            analyze_step_result=analyzed,
        )

    def request(self) -> RunRequest:
        """Return the example as a request; raises InvalidRequest when it lacks what the scorer needs."""
        example = self.example
        request = RunRequest(
            scorer_id=self.scorer.id,
            output=example.output,
            input=example.input,
            context=example.context,
            ground_truth=example.ground_truth,
            options=example.options,
            timeout_ms=1,
        )
        given = self.steps.material(request, {}).inputs
        for name in self.scorer.needs:
            if not given[name]:
                _refuse(f"{_EXAMPLE}/{name}", "missing", "Give the example what the scorer needs")
        return request

    def preprocess(self, step: Asking, material: Material, subject: Subject) -> tuple[Material, Subject]:
        reply, place = self.example.preprocess_step_result, f"{_EXAMPLE}/{PREPROCESS_RESULT}"
        if reply is None:
            _refuse(place, "missing", "Give the judge's reply to preprocess")
        if step.select is None:
            task: Task[Any] = self.steps.found(step, material)
            self.preprocess_prompt = f"{task.system}\n\n{self.steps.message(step.instructions, material)}"
            answer = _fitting(step, reply, place)
            self.preprocess_result, found = answer, listed_items(step, answer)
        else:
            task = self.steps.selection(step, material)
            self.preprocess_prompt = self.prompt(task, step, material, subject)
            chosen = _chosen(task, reply.get(step.select), subject, f"{place}/{step.select}")
            found = subject._replace(items=chosen)
            units = [subject.units[index] for index in chosen]
            answer = {step.select: [unit.text for unit in units]}
            self.preprocess_result = selected(step.select, units)
        return self.steps.after_preprocess(material, step, answer), found

    def analyze(self, material: Material, subject: Subject) -> tuple[str | None, dict[str, Any]]:
        step, reply, place = self.scorer.analyze, self.example.analyze_step_result, f"{_EXAMPLE}/{ANALYZE_RESULT}"
        task = self.steps.analysis(material)
        if self.scorer.definition.analyze.for_each is None:
            prompt = f"{task.system}\n\n{self.steps.message(step.instructions, material)}"
            return prompt, _fitting(step, reply, place)
        numbers = range(1, len(subject.items) + 1)
        try:
            answers = objects_in(step.shape, reply.get("verdicts"), numbers)
        except WrongReply:
            answers = {}
        if len(answers) < len(numbers):
            _refuse(
                f"{place}/verdicts", "verdicts", f"Give one verdict by the schema for each n from 1 to {len(numbers)}"
            )
        by_index = {subject.items[number - 1]: answer for number, answer in answers.items()}
        return self.prompt(task, step, material, subject), verdicts_result(subject, by_index)

    def prompt(self, task: Task[Any], step: Asking, material: Material, subject: Subject) -> str | None:
        """Return the prompt about all items at once, as a judge with room for them would get it."""
        if not subject.items:
            return None
        evidence = self.steps.evidence(step, material, subject)
        (window,) = evidence.windows(subject.items, _ROOMY)
        return f"{task.system}\n\n{user_message(task, self.steps.preamble, evidence, window, window.numbers)}"


def _fitting(step: Asking, reply: Any, place: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = read(step.shape, reply)
    except Misfit as misfit:
        _refuse(pointer(place, misfit.path), "reply", "Give a reply that fits the step's schema")
    return answer


def _chosen(task: Task[Any], reply: Any, subject: Subject, place: str) -> list[int]:
    try:
        answers = task.read(reply, range(1, len(subject.items) + 1))
    except WrongReply:
        _refuse(place, "reply", f"Give numbers of segments, from 1 to {len(subject.items)}")
    return [index for number, index in enumerate(subject.items, 1) if answers[number]]


def _refuse(place: str, code: str, detail: str) -> NoReturn:
    raise InvalidRequest(
        "The definition does not work on its example", (Fault(pointer=place, code=code, detail=detail),)
    )
