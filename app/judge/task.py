"""What one kind of judge call asks for: its instructions, the schema of the reply and how the reply is read."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters
from typing import Any, Generic, NamedTuple, TypeVar

from app.domain.errors import WrongReply
from app.domain.run import Step
from app.judge.fence import FENCE_RULE
from app.judge.labels import label_in, number_in, reason_in, text_in
from app.judge.reply_schema import (
    EXPLANATION_LENGTH,
    MOST_STATEMENTS,
    REASON_LENGTH,
    STATEMENT_LENGTH,
    Schema,
    label_map,
    object_of,
    some_of,
    statement_lists,
    text_up_to,
    verdict_list,
)
from app.judge.scorer import Assessment, Extraction, Scorer, Selection, View
from app.judge.tokens import token_bound

Answer = TypeVar("Answer")
Numbers = Sequence[int]

_EXPLAINED = (
    "In it, [number] marks a finding: its label and the words found; - why it was judged so, ? what the text answers."
)


class Assessed(NamedTuple):
    """The judge's labels for one item, by field, its reason where one was asked, and the numbers that it cites."""

    labels: Mapping[str, str]
    reason: str | None
    cited: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Task(Generic[Answer]):
    """One kind of call.

    `schema` makes the reply's schema for the items with these numbers. `read` turns the value under `key` into answers
    by number, leaving out what was not asked, is missing, unknown or contradictory; it raises WrongReply when the value
    is of no use at all. `write` is its inverse. `units` names what is decided on, in the plural.
    """

    step: Step
    name: str
    key: str
    system: str
    schema: Callable[[Numbers], Schema]
    read: Callable[[Any, Numbers], dict[int, Answer]]
    write: Callable[[Mapping[int, Answer]], Any]
    tokens_once: int
    tokens_per_item: int
    items_per_call: int
    reasons: bool
    units: str = "segments"

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

    def read(value: Any, numbers: Numbers) -> dict[int, bool]:
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
        read=lambda value, numbers: _statements(value, numbers, key),
        write=lambda answers: [{"n": number, key: list(texts)} for number, texts in sorted(answers.items())],
        tokens_once=24,
        tokens_per_item=110,
        items_per_call=20,
        reasons=False,
    )


@lru_cache(maxsize=1024)
def assessment_task(scorer: Scorer, assessment: Assessment, cited: tuple[int, ...] = ()) -> Task[Assessed]:
    """Return the task that asks for a verdict on every item, which may cite these numbers."""
    return _verdicts_task(scorer, assessment, cited) if assessment.reasons else _labels_task(scorer, assessment)


def _verdicts_task(scorer: Scorer, assessment: Assessment, cited: tuple[int, ...]) -> Task[Assessed]:
    fields = assessment.fields
    names = ['"passages": [numbers]'] * bool(assessment.cites)
    form = ", ".join(['"n": number', *names, '"reason": text', *(f'"{field}": label' for field in fields)])
    labels = "; ".join(f"{field}: {' | '.join(labels)}" for field, labels in fields.items())
    numbers_cited = "passages: the numbers of those it rests on, or []. " if assessment.cites else ""

    def written(number: int, answer: Assessed) -> dict[str, Any]:
        rests_on = {"passages": list(answer.cited)} if cited else {}
        return {"n": number, **rests_on, "reason": answer.reason, **answer.labels}

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
        read=lambda value, numbers: _assessed(value, numbers, assessment, cited),
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
        read=lambda value, numbers: _assessed(value, numbers, assessment),
        write=lambda answers: {str(number): answer.labels[field] for number, answer in sorted(answers.items())},
        tokens_once=24,
        tokens_per_item=20,
        items_per_call=40,
        reasons=False,
        units=assessment.units,
    )


@lru_cache(maxsize=256)
def explanation_task(scorer: Scorer) -> Task[str]:
    """Return the task that asks for the score's reason."""

    def read(value: Any, _: Numbers) -> dict[int, str]:
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


def merged(answers: Sequence[Assessed], field: str, labels: Sequence[str]) -> Assessed:
    """Return one answer out of those to the same item: the first with the foremost of labels, citing with its likes."""
    foremost = min((answer.labels[field] for answer in answers), key=labels.index)
    alike = [answer for answer in answers if answer.labels[field] == foremost]
    cited = sorted({number for answer in alike for number in answer.cited})
    return alike[0]._replace(cited=tuple(cited))


def _system(definitions: str, legend: str, form: str) -> str:
    return f"{definitions}\n\n{FENCE_RULE} {legend}\n\n{form} Keys and labels stay in English."


def _legend(view: View) -> str:
    marks = ["- marks context"] * view.neighbours + ["? what the text answers"] * (view.question_limit > 0)
    parts = ["In it, decide only on the lines that begin with [number]", *[", ".join(marks)] * bool(marks)]
    return "; ".join([*parts, *(exhibit.legend for exhibit in view.exhibits)]) + "."


def _statements(value: Any, numbers: Numbers, key: str) -> dict[int, tuple[str, ...]]:
    """Read lists of statements that each name their number, and statements that name it one by one.

    An item without an entry, with something that is no text or with too many of them has no answer. Raises WrongReply
    where numbers that were not asked for stand in the place of others.
    """
    found: dict[int, dict[str, None]] = {}
    broken = set()
    for number, entry in _numbered(value, numbers):
        texts = entry.get(key, entry.get(key.removesuffix("s"))) if isinstance(entry, dict) else entry
        for text in texts if isinstance(texts, list) else [texts]:
            statement = text_in(text)
            if statement is None or len(statement) > STATEMENT_LENGTH:
                broken.add(number)
            else:
                found.setdefault(number, {})[statement] = None
        found.setdefault(number, {})
    return {
        number: tuple(statements)
        for number, statements in found.items()
        if number not in broken and len(statements) <= MOST_STATEMENTS
    }


def _numbered(value: Any, numbers: Numbers) -> list[tuple[int, Any]]:
    """Return the entries about these numbers.

    Numbers that were not asked for are left out; raises WrongReply when others are missing for them, since a judge that
    counts otherwise may have shifted all of its answers.
    """
    entries = [(number, entry) for number, entry in _entries(value) if number is not None]
    named = {number for number, _ in entries}
    if named - set(numbers) and set(numbers) - named:
        raise WrongReply(
            "The judge numbered its verdicts otherwise than the items, re-asks included; "
            "try again or use a model that follows a JSON schema"
        )
    return [(number, entry) for number, entry in entries if number in numbers]


def _assessed(value: Any, numbers: Numbers, assessment: Assessment, cited: tuple[int, ...] = ()) -> dict[int, Assessed]:
    """Read verdicts in a list, each naming its number, or in an object by number.

    The first verdict on an item counts; a later one that says otherwise leaves the item without an answer. So does a
    label that can't be read, and a cited number that was not shown.
    """
    answers: dict[int, Assessed] = {}
    disputed: set[int] = set()
    for number, verdict in _numbered(value, numbers):
        answer = _one_assessed(verdict, assessment, cited)
        if answer is None or answers.setdefault(number, answer).labels != answer.labels:
            disputed.add(number)
    return {number: answer for number, answer in answers.items() if number not in disputed}


def _entries(value: Any) -> list[tuple[int | None, Any]]:
    if isinstance(value, dict) and "n" in value:
        value = [value]
    if isinstance(value, dict):
        return [(number_in(key), verdict) for key, verdict in value.items()]
    if isinstance(value, list):
        return [(number_in(verdict.get("n")), verdict) for verdict in value if isinstance(verdict, dict)]
    return []


def _one_assessed(verdict: Any, assessment: Assessment, cited: tuple[int, ...]) -> Assessed | None:
    fields = assessment.fields
    if not isinstance(verdict, dict):
        verdict = dict.fromkeys(fields, verdict) if len(fields) == 1 else {}
    read = {field: label_in(verdict.get(field.casefold()), known) for field, known in fields.items()}
    moot = {field for field, (other, label) in assessment.moot.items() if read[other] == label}
    labels = {field: label for field, label in read.items() if label is not None and field not in moot}
    rests_on = _numbers_cited(verdict.get("passages")) if cited else set()
    if len(labels) + len(moot) < len(fields) or not rests_on <= set(cited):
        return None
    return Assessed(labels, reason_in(verdict.get("reason"), REASON_LENGTH), tuple(n for n in cited if n in rests_on))


def _numbers_cited(value: Any) -> set[int | None]:
    """Read [1, 2], "P1" or nothing at all; what is no number becomes None."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return {number_in(one.strip(f"{ascii_letters}: ") if isinstance(one, str) else one) for one in values}
