"""What a run asks its judge, step by step: each inquiry's question, and what the answers make of its subject."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from app.domain.request import ExampleSet, Options, RunRequest, Scoring, Strategy
from app.judge.askers import Askers
from app.judge.evidence import Evidence, Window
from app.judge.exhibit import pieces_of
from app.judge.fence import fence_of
from app.judge.reading import Assessed, confidence, merged
from app.judge.reply_schema import MOST_ENUMERATED
from app.judge.scorer import Assessment, Extraction, Inquiry, Scorer, Selection, View
from app.judge.segment import Segments, segments_of
from app.judge.step import Asker
from app.judge.subject import Subject
from app.judge.task import Answer, Task, assessment_task, extraction_task, selection_task
from app.judge.verdict import Verdict, verdicts_of_code

_LOGPROBS = {Scoring.HARD: 5, Scoring.EXPECTED: 20}
"""Likeliest tokens that are asked for: enough to tell how sure a label is, and enough for many labels."""


@dataclass(frozen=True, slots=True)
class Question(Generic[Answer]):
    """What a step asks about some units (by index).

    `task_of` gives the task of a window, and `widest` is one whose schema is as long as theirs at least. `askers` all
    ask it, each for itself.
    """

    evidence: Evidence
    items: Sequence[int]
    widest: Task[Answer]
    task_of: Callable[[Window], Task[Answer]]
    askers: Sequence[Asker]


@dataclass(frozen=True, slots=True)
class Questions:
    """Makes one run's questions.

    `shown` keeps what was made to be shown, since steps share it, and `cut` the segments of exhibits, since other runs
    do.
    """

    request: RunRequest
    options: Options
    scorer: Scorer
    fence_key: bytes
    tenant: str
    askers: Askers
    shown: dict[tuple[int, View], Evidence] = field(default_factory=dict)
    cut: list[Segments] = field(default_factory=list)

    def for_preprocess(self, preprocess: Selection | Extraction, subject: Subject) -> Question[Any]:
        """Return the question of a preprocess step."""
        evidence = self.evidence(subject, preprocess.view)
        task: Task[Any]
        if isinstance(preprocess, Selection):
            task, asker = selection_task(self.scorer, preprocess), self.askers.own
        else:
            task, asker = extraction_task(preprocess), self.askers.shared(preprocess)
        return Question(evidence, subject.items, task, lambda _: task, [asker])

    def for_analyze(self, assessment: Assessment, subject: Subject) -> Question[Assessed]:
        """Return the question of an analyze step; a verdict may cite what its window shows."""
        evidence = self.evidence(subject, assessment.view)

        logprobs, examples = _LOGPROBS[self.options.scoring], self._has_examples

        def task(cited: tuple[int, ...]) -> Task[Assessed]:
            return assessment_task(self.scorer, assessment, cited, logprobs=logprobs, examples=examples)

        def task_of(window: Window) -> Task[Assessed]:
            return task(evidence.cited(assessment.cites, window.page))

        # The highest numbers make the longest schema, and more of them than are enumerated a shorter one.
        highest = evidence.cited(assessment.cites, evidence.whole)[-MOST_ENUMERATED:]
        return Question(evidence, subject.items, task(highest), task_of, self.askers.voices)

    @property
    def _has_examples(self) -> bool:
        """Whether worked examples are asked for: they are worth the most to judges that give no reasons."""
        if self.options.examples is None:
            return self.options.strategy is Strategy.LABELS
        return self.options.examples is not ExampleSet.NONE

    def evidence(self, subject: Subject, view: View) -> Evidence:
        """Return what the judge is shown of a subject; made once for equal views of it."""
        # A kept evidence keeps its units, so that no other units can have their id.
        key = (id(subject.units), view)
        if key not in self.shown:
            self.shown[key] = self._evidence(subject, view)
        return self.shown[key]

    def _evidence(self, subject: Subject, view: View) -> Evidence:
        exhibits = [(exhibit, list(exhibit.texts(self.request, self.options))) for exhibit in view.exhibits]
        self.cut.extend(segments_of(text) for _, texts in exhibits for text in texts)
        fenced = json.dumps([subject.text, *(texts for _, texts in exhibits)]) if exhibits else subject.text
        question = self.request.question or ""
        return Evidence(
            fence_of(self.fence_key, self.tenant, fenced),
            subject.units,
            question if len(question) <= view.question_limit else None,
            [piece for exhibit, texts in exhibits for piece in pieces_of(exhibit, texts)],
            neighbours=view.neighbours,
            piecewise=view.piecewise,
        )


def can_be_scored(inquiries: Sequence[Inquiry], subjects: Sequence[Subject]) -> bool:
    """Return whether there is something to ask about, and something of all that the score is about."""
    essential = [subject for inquiry, subject in zip(inquiries, subjects, strict=True) if inquiry.essential]
    is_left = any(subject.items or subject.decided for subject in subjects)
    return is_left and all(subject.items for subject in essential)


def found_in(subject: Subject, inquiry: Inquiry, answers: Mapping[int, Sequence[Any]]) -> Subject:
    """Return the subject as its preprocess step leaves it: with the units that matter, or with the statements found."""
    if not isinstance(inquiry.preprocess, Extraction):
        return subject._replace(items=[index for index in subject.items if answers[index][0]])
    statements = [
        subject.units[index]._replace(text=statement) for index in subject.items for statement in answers[index][0]
    ]
    return Subject(subject.text, statements, range(len(statements)))


def verdicts_on(subject: Subject, assessment: Assessment, answers: Mapping[int, Sequence[Assessed]]) -> list[Verdict]:
    """Return the verdicts on a subject's items and on what is decided, without those that turned out to be none."""
    verdicts = verdicts_of_code(subject)
    for index in subject.items:
        answer = merged(answers[index], *assessment.first)
        labels = assessment.read(answer.labels)
        if labels is not None:
            sure = confidence(answer, assessment)
            verdicts.append(Verdict(subject.units[index], labels, answer.reason, index, answer.cited, sure))
    return sorted(verdicts, key=lambda verdict: verdict.place)
