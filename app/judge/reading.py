"""Read what a judge answered about numbered items: verdicts and statements, and nothing that was not asked."""

from collections.abc import Callable, Mapping, Sequence
from string import ascii_letters
from typing import Any, NamedTuple

from app.domain.errors import WrongReply
from app.judge.labels import label_in, number_in, reason_in, text_in
from app.judge.likelihood import Alignment, Probabilities, foremost
from app.judge.loose_json import Placed
from app.judge.parse import placed_in
from app.judge.reply_schema import MOST_STATEMENTS, REASON_LENGTH, STATEMENT_LENGTH
from app.judge.scorer import Assessment
from app.ports import Completion

Numbers = Sequence[int]
Likely = Callable[[Mapping[str, Any], str], Probabilities | None]
"""Returns the probabilities of the labels of a verdict's first field, for which it gave this label."""

_PROBABILITIES = "probabilities"


class Assessed(NamedTuple):
    """The judge's labels for one item, by field, its reason where one was asked, and the numbers that it cites.

    `probabilities` are those of the first field's labels, where the judge's tokens tell them.
    """

    labels: Mapping[str, str]
    reason: str | None
    cited: tuple[int, ...] = ()
    probabilities: Probabilities | None = None


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
    value: Any,
    numbers: Numbers,
    assessment: Assessment,
    cited: tuple[int, ...] = (),
    likely: Likely = lambda _verdict, _label: None,
) -> dict[int, Assessed]:
    """Read verdicts in a list, each naming its number, or in an object by number.

    The first verdict on an item counts; a later one that says otherwise leaves the item without an answer. So does a
    label that can't be read, and a cited number that was not shown.
    """
    answers: dict[int, Assessed] = {}
    disputed: set[int] = set()
    for number, verdict in _numbered(value, numbers):
        answer = _one_assessed(verdict, assessment, cited, likely)
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


def _one_assessed(verdict: Any, assessment: Assessment, cited: tuple[int, ...], likely: Likely) -> Assessed | None:
    fields = assessment.fields
    if not isinstance(verdict, dict):
        verdict = dict.fromkeys(fields, verdict) if len(fields) == 1 else {}
    read = {field: label_in(verdict.get(field.casefold()), known) for field, known in fields.items()}
    moot = {field for field, (other, label) in assessment.moot.items() if read[other] == label}
    labels = {field: label for field, label in read.items() if label is not None and field not in moot}
    rests_on = _numbers_cited(verdict.get("passages")) if cited else set()
    if len(labels) + len(moot) < len(fields) or not rests_on <= set(cited):
        return None
    return Assessed(
        labels,
        reason_in(verdict.get("reason"), REASON_LENGTH),
        tuple(n for n in cited if n in rests_on),
        likely(verdict, labels[assessment.first.field]),
    )


def _numbers_cited(value: Any) -> set[int | None]:
    """Read [1, 2], "P1" or nothing at all; what is no number becomes None."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return {number_in(one.strip(f"{ascii_letters}: ") if isinstance(one, str) else one) for one in values}


def assessed_in(
    assessment: Assessment,
    key: str,
    cited: tuple[int, ...],
    value: Any,
    numbers: Numbers,
    completion: Completion | None = None,
) -> dict[int, Assessed]:
    """Read verdicts as verdicts_in does: those under key in a completion, with what its tokens tell, or kept ones."""
    if completion is None:
        return verdicts_in(value, numbers, assessment, cited, _kept(assessment))
    placed = None if completion.tokens is None else placed_in(completion.text, key, value)
    if completion.tokens is None or placed is None:
        return verdicts_in(value, numbers, assessment, cited)
    alignment = Alignment(completion.text, completion.tokens)
    field, labels = assessment.first

    def likely(verdict: Mapping[str, Any], label: str) -> Probabilities | None:
        written = verdict[field.casefold()]
        return alignment.probabilities(written.at, label, labels) if isinstance(written, Placed) else None

    return verdicts_in(placed, numbers, assessment, cited, likely)


def _kept(assessment: Assessment) -> Likely:
    """Return what reads the probabilities that stand beside a verdict which was written to be kept."""
    _, labels = assessment.first

    def likely(verdict: Mapping[str, Any], _: str) -> Probabilities | None:
        shares = verdict.get(_PROBABILITIES)
        if not isinstance(shares, list) or len(shares) != len(labels):
            return None
        known = {label: share for label, share in zip(labels, shares, strict=True) if isinstance(share, float)}
        return {label: share for label, share in known.items() if 0.0 < share <= 1.0} or None

    return likely


def written_probabilities(answer: Assessed, assessment: Assessment) -> dict[str, Any]:
    """Return what is to stand beside a verdict that is kept: the share of each label of its first field, if known."""
    if answer.probabilities is None:
        return {}
    _, labels = assessment.first
    return {_PROBABILITIES: [answer.probabilities.get(label, 0.0) for label in labels]}


def confidence(answer: Assessed, assessment: Assessment) -> float | None:
    """Return how likely the label was that the judge chose, None where its tokens do not tell."""
    if answer.probabilities is None:
        return None
    return answer.probabilities.get(answer.labels[assessment.first.field], 0.0)


def merged(answers: Sequence[Assessed], field: str, labels: Sequence[str]) -> Assessed:
    """Return one answer out of those to the same item: the first with the foremost of labels, citing with its likes.

    Its probabilities are those of being the foremost.
    """
    first = min((answer.labels[field] for answer in answers), key=labels.index)
    alike = [answer for answer in answers if answer.labels[field] == first]
    cited = sorted({number for answer in alike for number in answer.cited})
    likely = foremost([answer.probabilities for answer in answers], labels)
    return alike[0]._replace(cited=tuple(cited), probabilities=likely)
