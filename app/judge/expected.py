"""What a score expects: every label that a unit may have counts, by how likely it is."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.judge.reading import Assessed, merged
from app.judge.scorer import Assessment
from app.judge.subject import Subject
from app.judge.verdict import Verdict, WeighedUnit, verdicts_of_code

Labels = Mapping[str, str]


class Judged(NamedTuple):
    """A subject, what was asked about its items, and the answers by the item's index, one from every page."""

    subject: Subject
    assessment: Assessment
    answers: Mapping[int, Sequence[Assessed]]


def outcomes(answer: Assessed, assessment: Assessment) -> list[tuple[Labels, float]]:
    """Return the labels that a unit may have, as the judge gives them, and how likely each are.

    The first field's label varies. The others are as the judge gave them, and where it gave none, since they did not
    matter beside its own label, the first there is: the mildest. Without probabilities only the judge's own are left.
    """
    if answer.probabilities is None:
        return [(answer.labels, 1.0)]
    return [(_with_first(answer, assessment, label), share) for label, share in answer.probabilities.items()]


def _with_first(answer: Assessed, assessment: Assessment, label: str) -> Labels:
    labels = {field: answer.labels.get(field, known[0]) for field, known in assessment.fields.items()}
    labels[assessment.first.field] = label
    moot = {field for field, (other, without) in assessment.moot.items() if labels[other] == without}
    return {field: label for field, label in labels.items() if field not in moot}


def expected_on(judged: Judged) -> tuple[list[Verdict], list[WeighedUnit]]:
    """Return a verdict for every label that an item may have, with its share, and what the shares were taken from.

    Labels that make an item none at all leave their share out.
    """
    subject, assessment, answers = judged
    verdicts = verdicts_of_code(subject)
    weighed: list[WeighedUnit] = []
    for index in subject.items:
        unit, answer = subject.units[index], merged(answers[index], *assessment.first)
        weighed.append(WeighedUnit.of(unit, index, answer.probabilities))
        for labels, share in outcomes(answer, assessment):
            read = assessment.read(labels)
            if read is not None:
                verdicts.append(Verdict(unit, read, answer.reason, index, answer.cited, share=share))
    return verdicts, weighed
