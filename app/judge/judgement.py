"""What came of a run's analyze step: the verdicts, what the formula counts, and how sure both are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.model import Model
from app.domain.request import Scoring
from app.domain.run import Basis, RunWarning, Step
from app.judge.expected import Judged, expected_on, outcomes
from app.judge.interval import Chance, Prospects
from app.judge.likelihood import mean
from app.judge.questions import verdicts_on
from app.judge.reading import Assessed, merged
from app.judge.recount import recounts
from app.judge.scorer import Assessment, Scorer
from app.judge.subject import Subject
from app.judge.verdict import Verdict, WeighedUnit, verdicts_of_code
from app.judge.voting import Poll, Voter, elected, polls_on

NO_LOGPROBS = "no_logprobs"
"""The code of the warning on a run whose score should count probabilities that the judge did not tell."""

Answers = Mapping[int, Sequence[Assessed]]
"""One voter's answers by the item's index, one from every page."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts on the items of each inquiry, and what they were made of.

    `counted` are those that the formula counts. `weighed` are all units with their probabilities where it counts these.
    `polls` are empty where one voter judged alone. `settled` are the verdicts that code gave.
    """

    by_inquiry: Sequence[Sequence[Verdict]] = ()
    counted: Sequence[Verdict] = ()
    weighed: Sequence[WeighedUnit] | None = None
    alone: Sequence[Judged] = ()
    polls: Sequence[Poll] = ()
    settled: Sequence[Verdict] = ()

    @property
    def verdicts(self) -> list[Verdict]:
        """All verdicts."""
        return [verdict for verdicts in self.by_inquiry for verdict in verdicts]

    @property
    def basis(self) -> Basis | None:
        """What tells how sure the verdicts are; None where nothing does so of all of them."""
        if self.polls:
            return "votes"
        answers = [answer for one in self.alone for pages in one.answers.values() for answer in pages]
        told = bool(answers) and all(answer.probabilities is not None for answer in answers)
        return "probabilities" if told else None

    @property
    def prospects(self) -> list[Prospects]:
        """What the units might as well have been judged to be, where there is a basis to tell it."""
        certain = [[Chance(verdict, 1.0)] for verdict in self.settled]
        if self.polls:
            return [*certain, *recounts(self.polls)]
        return [*certain, *(_prospects(one, index) for one in self.alone for index in one.subject.items)]

    def analysis(self, scorer: Scorer) -> Model:
        """Return the step's result."""
        analysis = scorer.assessed(self.verdicts)
        return analysis if self.weighed is None else analysis.model_copy(update={"weighed": self.weighed})

    @property
    def warnings(self) -> list[RunWarning]:
        """What of the wanted probabilities was not told."""
        weighed = self.weighed or ()
        untold = sum(unit.probabilities is None for unit in weighed)
        detail = (
            f"The judge told no probabilities for {untold} of {len(weighed)} units, which count by their labels "
            "alone; use a judge that returns logprobs"
        )
        return [RunWarning(code=NO_LOGPROBS, detail=detail, step=Step.ANALYZE)] * bool(untold)


def judgement_of(
    subjects: Sequence[Subject],
    assessments: Sequence[Assessment],
    answers: Mapping[int, Sequence[Answers]],
    voters: Sequence[Voter],
    scoring: Scoring,
) -> Judgement:
    """Return the judgement on all subjects; `answers` are those of every voter, by the subject's index."""
    asked = [
        [Judged(subject, assessment, given) for given in answers.get(index, [{}] * len(voters))]
        for index, (subject, assessment) in enumerate(zip(subjects, assessments, strict=True))
    ]
    polls: list[Poll] = []
    by_inquiry = []
    for judged in asked:
        own = _polls(judged, voters) if len(voters) > 1 else []
        polls += own
        by_inquiry.append(_elected(judged[0].subject, own) if len(voters) > 1 else verdicts_on(*judged[0]))
    counted, weighed = [verdict for verdicts in by_inquiry for verdict in verdicts], None
    if scoring is Scoring.EXPECTED:
        expected = [_expected(judged) for judged in asked]
        counted = [verdict for verdicts, _ in expected for verdict in verdicts]
        weighed = [unit for _, units in expected for unit in units]
    alone = [judged[0] for judged in asked] if len(voters) == 1 else ()
    settled = [verdict for subject in subjects for verdict in verdicts_of_code(subject)]
    return Judgement(by_inquiry, counted, weighed, alone, polls, settled)


def _elected(subject: Subject, polls: Sequence[Poll]) -> list[Verdict]:
    return sorted([*verdicts_of_code(subject), *elected(polls)], key=lambda verdict: verdict.place)


def _polls(judged: Sequence[Judged], voters: Sequence[Voter]) -> list[Poll]:
    subject, assessment, _ = judged[0]
    return polls_on(subject, assessment, {voter: one.answers for voter, one in zip(voters, judged, strict=True)})


def _expected(judged: Sequence[Judged]) -> tuple[list[Verdict], list[WeighedUnit]]:
    """Return what expected_on does for one voter; of several each counts as much, with its label if that is all."""
    if len(judged) == 1:
        return expected_on(judged[0])
    verdicts: dict[tuple[int, tuple[tuple[str, str], ...]], Verdict] = {}
    for one in judged:
        for verdict in expected_on(one)[0]:
            key = (verdict.place, tuple(verdict.labels.items()))
            before = verdicts[key].share if key in verdicts else 0.0
            verdicts[key] = verdict._replace(share=before + verdict.share / len(judged))
    subject = judged[0].subject
    weighed = [
        WeighedUnit.of(subject.units[index], index, mean([_likely(one, index) for one in judged]))
        for index in subject.items
    ]
    return sorted(verdicts.values(), key=lambda verdict: verdict.place), weighed


def _likely(judged: Judged, index: int) -> Mapping[str, float]:
    answer = merged(judged.answers[index], *judged.assessment.first)
    return answer.probabilities or {answer.labels[judged.assessment.first.field]: 1.0}


def _prospects(judged: Judged, index: int) -> Prospects:
    """Return what a voter's probabilities make of an item."""
    subject, assessment, answers = judged
    answer = merged(answers[index], *assessment.first)
    return [
        Chance(None if read is None else Verdict(subject.units[index], read, answer.reason, index), share)
        for labels, share in outcomes(answer, assessment)
        for read in [assessment.read(labels)]
    ]
