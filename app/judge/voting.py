"""One verdict out of several judgements on a unit: the majority, and how far it is one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from app.judge.reading import Assessed, merged
from app.judge.scorer import Assessment
from app.judge.segment import Segment
from app.judge.subject import Subject
from app.judge.verdict import Verdict, Vote

Labels = Mapping[str, str]
Choice = TypeVar("Choice")


class Voter(NamedTuple):
    """Who judges: a model in one of its samples, numbered from 1."""

    model: str
    sample: int


class Ballot(NamedTuple):
    """What one voter says of a unit: the labels of its verdict, None where that is no verdict, and its answer."""

    voter: Voter
    labels: Labels | None
    answer: Assessed

    @property
    def choice(self) -> str | None:
        """Its first label, the one that decides; None for no verdict."""
        return None if self.labels is None else first_label(self.labels)

    @property
    def vote(self) -> Vote:
        """The ballot as it is shown; where it is no verdict, with the labels that the judge gave."""
        labels = self.answer.labels if self.labels is None else self.labels
        return Vote(model=self.voter.model, sample=self.voter.sample, labels=dict(labels))


class Poll(NamedTuple):
    """All ballots on one unit, those with the casting votes first; `place` is its index among the subject's units."""

    unit: Segment
    place: int
    assessment: Assessment
    ballots: Sequence[Ballot]

    @property
    def choice(self) -> str | None:
        """What most ballots choose, and of several such choices the one of the first ballot."""
        return majority(ballot.choice for ballot in self.ballots)

    @property
    def verdict(self) -> Verdict | None:
        """What the ballots elect, None for no verdict.

        The first label is the majority's. Every other one is what most of those say that share it; the reason is of
        the first ballot with all of these labels, or else with the first. `confidence` is the majority's share.
        """
        choice = self.choice
        if choice is None:
            return None
        return self.verdict_for(choice)._replace(votes=tuple(ballot.vote for ballot in self.ballots))

    def verdict_for(self, choice: str) -> Verdict:
        """Return what `verdict` is for the majority for the ballots with this first label, without votes."""
        alike = [ballot for ballot in self.ballots if ballot.choice == choice]
        votes = [ballot.labels for ballot in alike if ballot.labels is not None]
        labels = {field: majority(vote[field] for vote in votes if field in vote) for field in votes[0]}
        answer = next((ballot for ballot in alike if ballot.labels == labels), alike[0]).answer
        return Verdict(
            self.unit,
            labels,
            answer.reason,
            self.place,
            answer.cited,
            confidence=round(len(alike) / len(self.ballots), 4),
        )

    def among(self, model: str) -> "Poll":
        """Return the poll among this model's ballots alone."""
        return self._replace(ballots=[ballot for ballot in self.ballots if ballot.voter.model == model])


def polls_on(
    subject: Subject, assessment: Assessment, answers: Mapping[Voter, Mapping[int, Sequence[Assessed]]]
) -> list[Poll]:
    """Return the polls on a subject's items; `answers` are each voter's, by the unit's index."""

    def ballot(voter: Voter, index: int) -> Ballot:
        answer = merged(answers[voter][index], *assessment.first)
        return Ballot(voter, assessment.read(answer.labels), answer)

    return [
        Poll(subject.units[index], index, assessment, [ballot(voter, index) for voter in answers])
        for index in subject.items
    ]


def elected(polls: Sequence[Poll]) -> list[Verdict]:
    """Return the verdicts of polls, without those of units that turned out to be none."""
    return [verdict for verdict in (poll.verdict for poll in polls) if verdict is not None]


def agreement(polls: Sequence[Poll]) -> float:
    """Return the share of units about which all ballots choose the same."""
    agreed = sum(len({ballot.choice for ballot in poll.ballots}) == 1 for poll in polls)
    return round(agreed / len(polls), 4)


def dissents(polls: Sequence[Poll], model: str) -> int:
    """Return about how many units a model's ballots alone choose otherwise than all together."""
    return sum(poll.among(model).choice != poll.choice for poll in polls)


def majority(choices: Iterable[Choice]) -> Choice:
    """Return what is chosen most often, and of several such the one that is chosen first."""
    return Counter(choices).most_common(1)[0][0]


def first_label(labels: Labels) -> str:
    """Return the label that decides."""
    return next(iter(labels.values()))
