"""What one kind of judge call asks for: its instructions, the schema of the reply and how the reply is read."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from app.domain.errors import WrongReply
from app.domain.run import Step
from app.judge.fence import FENCE_RULE
from app.judge.labels import number_in, reason_in
from app.judge.reading import Assessed, Numbers, assessed_in, statements_in, written_probabilities
from app.judge.reply_schema import (
    EXPLANATION_LENGTH,
    MOST_STATEMENTS,
    Schema,
    label_map,
    object_of,
    some_of,
    statement_lists,
    text_up_to,
    verdict_list,
)
from app.judge.scorer import Assessment, Examples, Extraction, Scorer, Selection, View
from app.judge.tokens import token_bound
from app.ports import Completion

Answer = TypeVar("Answer")

_EXPLAINED = (
    "In it, [number] marks a finding: its label and the words found; - why it was judged so, ? what the text answers."
)


class Read(Protocol[Answer]):
    """Reads a value that was found in a completion, or without one a value that was written to be kept."""

    def __call__(self, value: Any, numbers: Numbers, completion: Completion | None = None, /) -> dict[int, Answer]:
        """Return the answers by number."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Task(Generic[Answer]):
    """One kind of call.

    `schema` makes the reply's schema for the items with these numbers. `read` turns the value under `key` into answers
    by number, leaving out what was not asked, is missing, unknown or contradictory; it raises WrongReply when the value
    is of no use at all. `write` is its inverse. `units` names what is decided on, in the plural. `logprobs` is how many
    of the likeliest tokens are asked for, to learn how likely each label was.
    """

    step: Step
    name: str
    key: str
    system: str
    schema: Callable[[Numbers], Schema]
    read: Read[Answer]
    write: Callable[[Mapping[int, Answer]], Any]
    tokens_once: int
    tokens_per_item: int
    items_per_call: int
    reasons: bool
    units: str = "segments"
    logprobs: int = 0

    def reply_tokens(self, count: int) -> int:
        """Return how many tokens a good reply about count items may take."""
        return self.tokens_once + self.tokens_per_item * count


class ReplyForm(NamedTuple):
    """The schema of a reply, and how many tokens it takes at most where a provider puts it into the prompt."""

    schema: Schema
    tokens: int


@lru_cache(maxsize=1024)
def _reply_form(task: Task[Any], numbers: tuple[int, ...]) -> ReplyForm:
    schema = task.schema(numbers)
    return ReplyForm(schema, token_bound(json.dumps(schema)))


def reply_form(task: Task[Any], numbers: Numbers) -> ReplyForm:
    """Return the form of a reply about these items; made once, as the same numbers come again and again."""
    return _reply_form(task, tuple(numbers))


@lru_cache(maxsize=256)
def selection_task(scorer: Scorer, selection: Selection) -> Task[bool]:
    """Return the task that asks which segments matter."""
    key = selection.key

    def read(value: Any, numbers: Numbers, _: Completion | None = None) -> dict[int, bool]:
        chosen = [number_in(item) for item in value] if isinstance(value, list) else [None]
        # A number that was not shown may stand for any segment: nothing of such a reply can be trusted.
        if not set(chosen) <= set(numbers):
            raise WrongReply(
                "The judge named segments that it had not been shown, re-asks included; "
                "try again or use a model that follows a JSON schema"
            )
        return {number: number in chosen for number in numbers}

    return Task(
        step=Step.PREPROCESS,
        name=f"{scorer.id}_preprocess",
        key=key,
        system=_system(
            selection.system,
            _legend(selection.view),
            f'Answer with JSON only: {{"{key}": [numbers]}}, or {{"{key}": []}} when there is none.',
        ),
        schema=lambda numbers: object_of({key: some_of(numbers)}),
        read=read,
        write=lambda answers: [number for number, chosen in sorted(answers.items()) if chosen],
        tokens_once=24,
        tokens_per_item=6,
        items_per_call=40,
        reasons=False,
    )


@lru_cache(maxsize=64)
def extraction_task(extraction: Extraction) -> Task[tuple[str, ...]]:
    """Return the task that asks for the statements in every unit; it is the same for all scorers."""
    key = extraction.key
    return Task(
        step=Step.PREPROCESS,
        name=extraction.name,
        key="segments",
        system=_system(
            extraction.system,
            _legend(extraction.view),
            f'Answer with JSON only: {{"segments": [{{"n": number, "{key}": [texts]}}]}}, one entry for every number, '
            f'in order; "{key}": [] when it has none, at most {MOST_STATEMENTS}.',
        ),
        schema=lambda numbers: object_of({"segments": statement_lists(numbers, key)}),
        read=lambda value, numbers, _=None: statements_in(value, numbers, key),
        write=lambda answers: [{"n": number, key: list(texts)} for number, texts in sorted(answers.items())],
        tokens_once=24,
        tokens_per_item=110,
        items_per_call=20,
        reasons=False,
    )


@lru_cache(maxsize=1024)
def assessment_task(
    scorer: Scorer,
    assessment: Assessment,
    cited: tuple[int, ...] = (),
    *,
    logprobs: int = 0,
    examples: bool = False,
) -> Task[Assessed]:
    """Return the task that asks for a verdict on every item, which may cite these numbers.

    `examples`: its instructions end with the assessment's worked examples, if it has any.
    """
    task = _verdicts_task(scorer, assessment, cited) if assessment.reasons else _labels_task(scorer, assessment)
    worked = _worked(task, assessment.examples) if examples and assessment.examples else ""
    return replace(task, logprobs=logprobs, system=task.system + worked)


def _worked(task: Task[Assessed], examples: Examples) -> str:
    """Return examples as the judge would be shown them, outside of any fence, and as it should answer."""
    units = dict(enumerate(examples.units, 1))
    lines = [*examples.beside, *(f"[{number}] {unit.text}" for number, unit in units.items())]
    answers = {number: Assessed(unit.labels, unit.reason, unit.cited) for number, unit in units.items()}
    reply = json.dumps({task.key: task.write(answers)}, ensure_ascii=False)
    return "\n".join(["\n\nAn example, with another text:", *lines, f"Its answer: {reply}"])


def _verdicts_task(scorer: Scorer, assessment: Assessment, cited: tuple[int, ...]) -> Task[Assessed]:
    fields = assessment.fields
    names = ['"passages": [numbers]'] * bool(assessment.cites)
    form = ", ".join(['"n": number', *names, '"reason": text', *(f'"{field}": label' for field in fields)])
    labels = "; ".join(f"{field}: {' | '.join(labels)}" for field, labels in fields.items())
    numbers_cited = "passages: the numbers of those it rests on, or []. " if assessment.cites else ""

    def written(number: int, answer: Assessed) -> dict[str, Any]:
        rests_on = {"passages": list(answer.cited)} if assessment.cites else {}
        likely = written_probabilities(answer, assessment)
        return {"n": number, **rests_on, "reason": answer.reason, **answer.labels, **likely}

    return Task(
        step=Step.ANALYZE,
        name=f"{scorer.id}_analyze",
        key="verdicts",
        system=_system(
            assessment.system,
            _legend(assessment.view),
            f'Answer with JSON only: {{"verdicts": [{{{form}}}]}}, one entry for every number, in order. '
            f"{numbers_cited}reason: at most 15 words, before you decide. {labels}.",
        ),
        schema=lambda numbers: object_of({"verdicts": verdict_list(numbers, fields, cited)}),
        read=partial(assessed_in, assessment, "verdicts", cited),
        write=lambda answers: [written(number, answer) for number, answer in sorted(answers.items())],
        tokens_once=24,
        tokens_per_item=150 if assessment.cites else 130,
        items_per_call=20,
        reasons=True,
        units=assessment.units,
    )


def _labels_task(scorer: Scorer, assessment: Assessment) -> Task[Assessed]:
    ((field, labels),) = assessment.fields.items()

    def schema(numbers: Numbers) -> Schema:
        by_number, definitions = label_map(numbers, labels)
        return {**object_of({"labels": by_number}), "$defs": definitions}

    def written(answer: Assessed) -> Any:
        likely = written_probabilities(answer, assessment)
        return {**answer.labels, **likely} if likely else answer.labels[field]

    return Task(
        step=Step.ANALYZE,
        name=f"{scorer.id}_label",
        key="labels",
        system=_system(
            assessment.system,
            _legend(assessment.view),
            'Answer with JSON only: {"labels": {"1": label, "2": label}}, one label for every number. '
            f"Labels: {' | '.join(labels)}.",
        ),
        schema=schema,
        read=partial(assessed_in, assessment, "labels", ()),
        write=lambda answers: {str(number): written(answer) for number, answer in sorted(answers.items())},
        tokens_once=24,
        tokens_per_item=20,
        items_per_call=40,
        reasons=False,
        units=assessment.units,
    )


@lru_cache(maxsize=256)
def explanation_task(scorer: Scorer) -> Task[str]:
    """Return the task that asks for the score's reason."""

    def read(value: Any, _: Numbers, __: Completion | None = None) -> dict[int, str]:
        reason = reason_in(value, EXPLANATION_LENGTH)
        return {} if reason is None else {1: reason}

    return Task(
        step=Step.GENERATE_REASON,
        name=f"{scorer.id}_reason",
        key="reason",
        system=_system(scorer.explanation, _EXPLAINED, 'Answer with JSON only: {"reason": text}.'),
        schema=lambda _: object_of({"reason": text_up_to(EXPLANATION_LENGTH)}),
        read=read,
        write=lambda answers: answers[1],
        tokens_once=300,
        tokens_per_item=0,
        items_per_call=1,
        reasons=True,
    )


def _system(definitions: str, legend: str, form: str) -> str:
    return f"{definitions}\n\n{FENCE_RULE} {legend}\n\n{form} Keys and labels stay in English."


def _legend(view: View) -> str:
    marks = ["- marks context"] * view.neighbours + ["? what the text answers"] * (view.question_limit > 0)
    parts = ["In it, decide only on the lines that begin with [number]", *[", ".join(marks)] * bool(marks)]
    return "; ".join([*parts, *(exhibit.legend for exhibit in view.exhibits)]) + "."
