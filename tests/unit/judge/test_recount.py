import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.judge.recount import election, recounts
from app.judge.scorer import Assessment
from app.judge.voting import Poll
from tests.unit.judge.ballots import poll

WEIGHTS = st.tuples(st.floats(0.01, 20), st.floats(0.0, 20), st.floats(0.0, 20))


def chances(polls: list[Poll], index: int = 0) -> dict[str, float]:
    told: dict[str, float] = {}
    for verdict, probability in recounts(polls)[index]:
        name = "none" if verdict is None else " ".join(verdict.labels.values())
        told[name] = told.get(name, 0.0) + probability
    return {name: round(probability, 4) for name, probability in told.items()}


def test_an_election_by_hand() -> None:
    # Three votes by weights 4 and 2, Dirichlet-multinomial: (4 5 6, 3 * 4 5 * 2, 3 * 4 * 2 3, 2 3 4) / (6 7 8).
    assert election((4.0, 2.0, 0.0), 3) == pytest.approx(((120 + 120) / 336, (72 + 24) / 336, 0.0))
    # One vote goes by the weights.
    assert election((1.0, 2.0, 5.0), 1) == pytest.approx((1 / 8, 2 / 8, 5 / 8))
    # Two votes for two candidates: (1 2, 2 * 1 1, 1 2) / (2 3), the tie shared.
    assert election((1.0, 1.0, 0.0), 2) == pytest.approx((0.5, 0.5, 0.0))


@settings(deadline=None)
@given(WEIGHTS, st.integers(1, 12))
def test_an_election_has_a_winner_and_favours_nobody_by_place(weights: tuple[float, float, float], voters: int) -> None:
    result = election(weights, voters)
    assert math.isclose(sum(result), 1.0)
    assert min(result) >= 0.0
    assert election(weights[::-1], voters) == pytest.approx(result[::-1])


def test_one_unit_by_hand() -> None:
    # Three votes of three: by the rule of succession 1 in 5 dissents, half for either rival. The chance of yes is that
    # of two or three votes with weight 3.8 of 4: (3.8 4.8 5.8 + 3 * 3.8 4.8 * 0.2) / (4 5 6), and one against one
    # against one is shared.
    told = chances([poll("yes a", "yes a", "yes a")])
    tie = 6 * 3.8 * 0.1 * 0.1 / 120
    assert told["yes a"] == round((3.8 * 4.8 * 5.8 + 3 * 3.8 * 4.8 * 0.2) / 120 + tie / 3, 4)
    assert told["no"] == told["none"]
    assert sum(told.values()) == pytest.approx(1.0, abs=1e-3)


def test_what_votes_say_is_the_verdict_and_what_none_says_is_all_that_it_may_be() -> None:
    told = chances([poll("no", "no", "yes b")])
    assert set(told) == {"no", "yes b", "none"}
    told = chances([poll("no", "no", "no")])
    assert set(told) == {"no", "yes a", "yes b", "none"}
    assert told["yes a"] == told["yes b"]
    assert told["none"] == pytest.approx(told["yes a"] + told["yes b"], abs=2e-4)
    assert set(chances([poll("none", "none", "none")])) == {"none", "yes a", "yes b", "no"}


def test_verdicts_know_their_unit() -> None:
    verdicts = [chance.verdict for chance in recounts([poll("no", "no", place=7)])[0]]
    assert {(verdict.place, verdict.item.text) for verdict in verdicts if verdict is not None} == {(7, "Words")}


def test_more_votes_that_agree_make_it_surer_here_and_elsewhere() -> None:
    by_votes = [chances([poll(*["no"] * votes)])["no"] for votes in (2, 3, 5, 9)]
    assert by_votes == sorted(by_votes)
    by_units = [
        chances([poll("no", "no", "yes a"), *[poll("no", "no", "no")] * units])["no"] for units in (0, 1, 5, 20)
    ]
    assert by_units == sorted(by_units)
    assert by_units[0] < by_units[-1]


def test_dissent_makes_it_less_sure() -> None:
    sure = [chances([poll(*["yes a"] * (7 - against), *["no"] * against)])["yes a"] for against in (0, 1, 2, 3)]
    assert all(more > less for more, less in pairwise(sure))


def test_where_nothing_else_can_be_there_is_no_doubt() -> None:
    settled = Assessment(fields={"verdict": ("yes",)}, system="Decide.", reasons=True, read=lambda labels: labels)
    ((chance,),) = recounts([poll("yes", "yes", assessment=settled)])
    assert chance.probability == 1.0


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(["yes a", "yes b", "no", "none"]), min_size=3, max_size=3), min_size=1))
def test_probabilities_add_up(votes: list[list[str]]) -> None:
    for unit in recounts([poll(*one) for one in votes]):
        assert math.isclose(sum(chance.probability for chance in unit), 1.0)
        assert min(chance.probability for chance in unit) >= 0.0
