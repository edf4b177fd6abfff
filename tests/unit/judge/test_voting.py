from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.judge.reading import Assessed
from app.judge.subject import listed
from app.judge.verdict import Vote
from app.judge.voting import Voter, agreement, dissents, polls_on
from tests.unit.judge.ballots import ASSESSMENT, poll

VOTES = st.lists(st.sampled_from(["yes a", "yes b", "no", "none"]), min_size=1, max_size=11)


@pytest.mark.parametrize(
    ("votes", "labels", "confidence", "reason"),
    [
        (["yes a", "no", "yes a"], {"verdict": "yes", "kind": "a"}, 0.6667, "Reason 1."),
        (["no", "yes a", "yes b", "yes b"], {"verdict": "yes", "kind": "b"}, 0.75, "Reason 3."),
        # The label that decides is counted first: kinds do not split the vote for it.
        (["no", "no", "yes a", "yes b", "yes b"], {"verdict": "yes", "kind": "b"}, 0.6, "Reason 4."),
        # A tie is decided by the first ballot of those that are tied.
        (["no", "yes a", "yes a", "no"], {"verdict": "no"}, 0.5, "Reason 1."),
        (["none", "yes b", "no", "yes a", "no"], {"verdict": "yes", "kind": "b"}, 0.4, "Reason 2."),
    ],
)
def test_the_majority_is_elected(votes: list[str], labels: dict[str, str], confidence: float, reason: str) -> None:
    verdict = poll(*votes).verdict
    assert verdict is not None
    assert (verdict.labels, verdict.confidence, verdict.reason) == (labels, confidence, reason)


def test_other_fields_are_counted_one_by_one_and_explained_by_the_first_that_agrees_in_the_deciding_one() -> None:
    given = [("a", "u"), ("b", "v"), ("c", "v")]
    ballots = [
        ballot._replace(labels={"verdict": "yes", "kind": kind, "used": used})
        for ballot, (kind, used) in zip(poll("yes a", "yes b", "yes a").ballots, given, strict=True)
    ]
    verdict = poll("no", place=3)._replace(ballots=ballots).verdict
    assert verdict is not None
    assert verdict.labels == {"verdict": "yes", "kind": "a", "used": "v"}
    assert (verdict.reason, verdict.cited, verdict.place) == ("Reason 1.", (1,), 3)


def test_a_unit_that_most_hold_to_be_none_has_no_verdict() -> None:
    assert poll("none", "yes a", "none").verdict is None
    assert poll("none", "yes a", "no").verdict is None


def test_all_votes_stand_on_the_verdict() -> None:
    verdict = poll("yes a", "none", "no", models="xyx").verdict
    assert verdict is not None
    assert verdict.votes == (
        Vote(model="x", sample=1, labels={"verdict": "yes", "kind": "a"}),
        Vote(model="y", sample=1, labels={"verdict": "none"}),
        Vote(model="x", sample=2, labels={"verdict": "no"}),
    )


@settings(deadline=None)
@given(VOTES)
def test_nothing_has_more_votes_than_what_is_elected(votes: list[str]) -> None:
    polled = poll(*votes)
    counts = Counter(vote.split()[0] for vote in votes)
    elected = "none" if polled.choice is None else polled.choice
    assert counts[elected] == max(counts.values())
    if polled.verdict is not None:
        assert polled.verdict.confidence == round(counts[elected] / len(votes), 4)


@settings(deadline=None)
@given(VOTES)
def test_who_votes_alone_or_with_likes_elects_that(votes: list[str]) -> None:
    like = [votes[0]] * len(votes)
    verdict = poll(*like).verdict
    assert (verdict is None) == (votes[0] == "none")
    assert verdict is None or (verdict.confidence == 1.0 and " ".join(verdict.labels.values()) == votes[0])


def test_pages_are_merged_before_the_vote() -> None:
    subject = listed(["Tea.", " ", "Coffee."])
    yes, no = Assessed({"verdict": "yes", "kind": "a"}, "Because."), Assessed({"verdict": "no"}, "Not so.")
    answers = {Voter("m", 1): {0: [no, yes], 2: [no]}, Voter("m", 2): {0: [no, no], 2: [no]}}
    first, second = polls_on(subject, ASSESSMENT, answers)
    assert [ballot.choice for ballot in first.ballots] == ["yes", "no"]
    assert [ballot.choice for ballot in second.ballots] == ["no", "no"]
    assert (second.place, second.unit.text) == (2, "Coffee.")


def test_agreement_and_dissents() -> None:
    polls = [
        poll("yes a", "yes b", "yes a", models="xyz"),
        poll("no", "yes b", "yes a", models="xyz"),
        poll("none", "none", "yes a", models="xyz"),
    ]
    # Kinds do not matter, only what decides: one unit of three.
    assert agreement(polls) == 0.3333
    assert [dissents(polls, model) for model in "xyz"] == [1, 0, 1]


def test_samples_of_one_model_dissent_together() -> None:
    polls = [poll("yes a", "no", "no", "yes a", "yes a", models="xxxyy")]
    assert polls[0].choice == "yes"
    assert (dissents(polls, "x"), dissents(polls, "y")) == (1, 0)
