"""Read what a judge answered about numbered items: verdicts and statements, and nothing that was not asked."""

from collections.abc import Mapping, Sequence
from string import ascii_letters
from typing import Any, NamedTuple

from app.domain.errors import WrongReply
from app.judge.labels import label_in, number_in, reason_in, text_in
from app.judge.reply_schema import MOST_STATEMENTS, REASON_LENGTH, STATEMENT_LENGTH
from app.judge.scorer import Assessment

Numbers = Sequence[int]


class Assessed(NamedTuple):
    """The judge's labels for one item, by field, its reason where one was asked, and the numbers that it cites."""

    labels: Mapping[str, str]
    reason: str | None
    cited: tuple[int, ...] = ()


def statements_in(value: Any, numbers: Numbers, key: str) -> dict[int, tuple[str, ...]]:
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


def verdicts_in(
    value: Any, numbers: Numbers, assessment: Assessment, cited: tuple[int, ...] = ()
) -> dict[int, Assessed]:
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


def merged(answers: Sequence[Assessed], field: str, labels: Sequence[str]) -> Assessed:
    """Return one answer out of those to the same item: the first with the foremost of labels, citing with its likes."""
    foremost = min((answer.labels[field] for answer in answers), key=labels.index)
    alike = [answer for answer in answers if answer.labels[field] == foremost]
    cited = sorted({number for answer in alike for number in answer.cited})
    return alike[0]._replace(cited=tuple(cited))
