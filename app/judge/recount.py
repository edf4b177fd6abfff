"""What would be elected if the same voters judged a unit again, as far as their votes tell."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product

from app.judge.interval import Chance, Prospects
from app.judge.scorer import Assessment
from app.judge.verdict import Verdict
from app.judge.voting import Labels, Poll, first_label


def recounts(polls: Sequence[Poll]) -> list[Prospects]:
    """Return what may become of each unit in another election.

    The votes on a unit are taken for independent draws from a distribution (Dirichlet) that is known by them and by one
    vote more: for what they elect, but for the dissent rate of all polls, which goes to all else. So a few votes that
    agree are not taken for certainty, and many on other units make dissent on this one less likely. All but the elected
    and the runner-up stand for election as one, which makes them a little more likely than they are.
    """
    dissent = _dissent_rate(polls)
    return [_recount(poll, dissent) for poll in polls]


def _dissent_rate(polls: Sequence[Poll]) -> float:
    """Return how likely a vote is to differ from what was elected, by Laplace's rule of succession."""
    votes = sum(len(poll.ballots) for poll in polls)
    dissenting = sum(ballot.choice != poll.choice for poll in polls for ballot in poll.ballots)
    return (dissenting + 1) / (votes + 2)


def _recount(poll: Poll, dissent: float) -> Prospects:
    elected, cast, possible = poll.choice, Counter(ballot.choice for ballot in poll.ballots), _possible(poll.assessment)
    rivals = sorted((choice for choice in possible if choice != elected), key=lambda choice: -cast[choice])
    weights = {choice: cast[choice] + dissent / len(rivals) for choice in rivals}
    runner_up, rest = sum(list(weights.values())[:1]), sum(list(weights.values())[1:])
    again, upset, rare = election((cast[elected] + 1 - dissent, runner_up, rest), len(poll.ballots))
    chances = {elected: again}
    for index, choice in enumerate(rivals):
        chances[choice] = rare * weights[choice] / rest if index else upset
    return [
        Chance(verdict, chance / len(verdicts))
        for choice, chance in chances.items()
        for verdicts in [_verdicts(poll, choice, cast[choice], possible)]
        for verdict in verdicts
    ]


def _verdicts(
    poll: Poll, choice: str | None, cast: int, possible: Mapping[str | None, Sequence[Labels]]
) -> Sequence[Verdict | None]:
    """Return the verdict that the votes for a choice make, or all that it may stand for where there is no such vote."""
    if choice is None:
        return [None]
    if cast:
        return [poll.verdict_for(choice)]
    return [Verdict(poll.unit, labels, None, poll.place) for labels in possible[choice]]


@lru_cache(maxsize=256)
def _possible(assessment: Assessment) -> Mapping[str | None, Sequence[Labels]]:
    """Return all that a verdict may be, by its first label; nothing for a unit that turned out to be none."""
    verdicts: dict[str | None, list[Labels]] = {}
    for combination in product(*assessment.fields.values()):
        given = dict(zip(assessment.fields, combination, strict=True))
        moot = {field for field, (other, label) in assessment.moot.items() if given[other] == label}
        labels = assessment.read({field: label for field, label in given.items() if field not in moot})
        alike = verdicts.setdefault(None if labels is None else first_label(labels), [])
        if labels is not None and labels not in alike:
            alike.append(labels)
    return verdicts


@lru_cache(maxsize=4096)
def election(weights: tuple[float, float, float], voters: int) -> tuple[float, float, float]:
    """Return how likely each of three wins among so many voters, whose shares are Dirichlet with these weights.

    The votes are Dirichlet-multinomial (Pólya); those who are tied have even chances. A weight may be 0.
    """
    ways_one, ways_two, ways_three = (_ways(weight, voters) for weight in weights)
    chances = [0.0, 0.0, 0.0]
    for one in range(voters + 1):
        for two in range(voters + 1 - one):
            three = voters - one - two
            most = max(one, two, three)
            winners = [index for index, votes in enumerate((one, two, three)) if votes == most]
            share = ways_one[one] * ways_two[two] * ways_three[three] / len(winners)
            for index in winners:
                chances[index] += share
    total = sum(chances)
    return chances[0] / total, chances[1] / total, chances[2] / total


def _ways(weight: float, most: int) -> list[float]:
    """Return, by number of votes, the rising factorial of the weight over that of 1."""
    ways = [1.0]
    for count in range(most):
        ways.append(ways[-1] * (weight + count) / (count + 1))
    return ways
