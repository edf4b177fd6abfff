"""Ballots and polls for tests of what several voices make of a unit."""

from collections.abc import Mapping

from app.judge.reading import Assessed
from app.judge.scorer import Assessment
from app.judge.segment import Segment
from app.judge.voting import Ballot, Poll, Voter


def read(labels: Mapping[str, str]) -> Mapping[str, str] | None:
    return None if labels["verdict"] == "none" else labels


ASSESSMENT = Assessment(
    fields={"verdict": ("yes", "no", "none"), "kind": ("a", "b")},
    system="Decide.",
    reasons=True,
    read=read,
    moot={"kind": ("verdict", "no")},
)


def poll(*votes: str, models: str = "", place: int = 0, assessment: Assessment = ASSESSMENT) -> Poll:
    """A poll with votes such as "yes a" or "no"; `models` names who gives each, one letter a vote."""
    names = models or "m" * len(votes)
    ballots = []
    for index, (vote, name) in enumerate(zip(votes, names, strict=True)):
        labels = dict(zip(("verdict", "kind"), vote.split(), strict=False))
        answer = Assessed(labels, f"Reason {index + 1}.", (index + 1,))
        ballots.append(Ballot(Voter(name, names[:index].count(name) + 1), assessment.read(labels), answer))
    return Poll(Segment(4, 9, "Words"), place, assessment, ballots)
