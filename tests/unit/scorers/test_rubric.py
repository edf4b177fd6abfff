from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from app.domain.scoring import scaled
from app.judge.subject import Subject
from app.judge.verdict import Verdict
from app.scorers.rubric import SCORER, RubricOptions
from tests.unit.judge.runs import request_of

CRITERIA = [
    {"id": "polite", "description": "The answer is polite.", "required": True},
    {"id": "price", "description": "It names the price.", "weight": 3},
    {"id": "short", "description": "It has one sentence."},
]


def options(criteria: Any = None) -> RubricOptions:
    return RubricOptions.model_validate({"criteria": CRITERIA if criteria is None else criteria})


def subject(asked: RubricOptions) -> Subject:
    return SCORER.inquiries[0].subject(request_of("Thanks."), asked)


def verdicts(met: str, asked: RubricOptions) -> list[Verdict]:
    """One verdict a criterion; "y" is one that is met."""
    units = subject(asked).units
    return [
        Verdict(units[place], {"verdict": "yes" if one == "y" else "no"}, "Why.", place)
        for place, one in enumerate(met)
    ]


@pytest.mark.parametrize(
    ("met", "score"),
    [("yyy", 1.0), ("yyn", 0.8), ("yny", 0.4), ("ynn", 0.2), ("nyy", 0.0), ("nnn", 0.0)],
)
def test_worked_examples(met: str, score: float) -> None:
    value = SCORER.value(verdicts(met, options()), options())
    assert value is not None
    assert scaled(value, 1.0) == score


def test_equal_weights_without_required_criteria() -> None:
    asked = options([{"id": str(n), "description": "So."} for n in range(3)])
    value = SCORER.value(verdicts("yyn", asked), asked)
    assert value is not None
    assert scaled(value, 1.0) == 0.6667


def test_likely_verdicts_give_the_expected_score() -> None:
    asked = options()
    polite, price, short = verdicts("yyy", asked)
    found = [polite._replace(share=0.5), price, short._replace(share=0.25)]
    found += [one._replace(share=1 - one.share, labels={"verdict": "no"}) for one in (found[0], found[2])]
    assert SCORER.value(found, asked) == pytest.approx(0.5 * (1 + 3 + 0.25) / 5)


def test_shares_that_do_not_add_up_to_1_exactly_give_no_more_than_1() -> None:
    found = verdicts("yyy", options())
    assert SCORER.value([one._replace(share=1.0000000000000002) for one in found], options()) == 1.0


@st.composite
def judged(draw: st.DrawFn) -> tuple[RubricOptions, list[Verdict]]:
    criterion = st.fixed_dictionaries(
        {"description": st.just("So."), "required": st.booleans(), "weight": st.floats(0.001, 1_000)}
    )
    criteria = draw(st.lists(criterion, min_size=1, max_size=50))
    asked = options([{**one, "id": str(number)} for number, one in enumerate(criteria)])
    return asked, verdicts("".join(draw(st.sampled_from("yn")) for _ in criteria), asked)


@given(judged(), st.data())
def test_the_score_is_within_0_and_1_and_moves_the_right_way(
    case: tuple[RubricOptions, list[Verdict]], data: st.DataObject
) -> None:
    asked, found = case
    place = data.draw(st.integers(0, len(found) - 1))

    def value(label: str) -> float:
        changed = [*found]
        changed[place] = found[place]._replace(labels={"verdict": label})
        number = SCORER.value(changed, asked)
        assert number is not None
        return number

    assert 0.0 <= value("no") <= value("yes") <= 1.0
    if asked.criteria[place].required:
        assert value("no") == 0.0


def test_every_criterion_met_is_exactly_1() -> None:
    asked = options([{"id": str(n), "description": "So.", "weight": 0.1 * n} for n in range(1, 51)])
    assert SCORER.value(verdicts("y" * 50, asked), asked) == 1.0


@pytest.mark.parametrize(
    "criteria",
    [
        [],
        [{"id": "a", "description": "So."}] * 2,
        [{"id": str(n), "description": "So."} for n in range(51)],
        [{"id": "no spaces", "description": "So."}],
        [{"id": "a", "description": " "}],
        [{"id": "a", "description": "a\x00"}],
        [{"id": "a", "description": "a" * 2_001}],
        [{"id": "a"}],
        [{"description": "So."}],
        [{"id": "a", "description": "So.", "weight": 0}],
        [{"id": "a", "description": "So.", "weight": float("inf")}],
        [{"id": "a", "description": "So.", "extra": 1}],
    ],
)
def test_criteria_that_can_not_be_judged_by_are_refused(criteria: Any) -> None:
    with pytest.raises(ValidationError):
        options(criteria)


def test_a_rubric_without_criteria_is_refused() -> None:
    with pytest.raises(ValidationError, match="criteria"):
        RubricOptions.model_validate({})


def test_ids_and_weights_do_not_change_what_is_asked() -> None:
    other = [{"id": f"x{n}", "description": one["description"], "weight": 9} for n, one in enumerate(CRITERIA)]
    asked = [subject(options(criteria)) for criteria in (CRITERIA, other)]
    assert asked[0].text == asked[1].text
    assert [unit[:3] for unit in asked[0].units] == [unit[:3] for unit in asked[1].units]


def test_step_results_fit_their_published_schema() -> None:
    document = SCORER.assessed(verdicts("yny", options())).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(document)
    assert document["verdicts"][:2] == [
        {"id": "polite", "verdict": "yes", "required": True, "weight": 1.0, "reason": "Why."},
        {"id": "price", "verdict": "no", "required": False, "weight": 3.0, "reason": "Why."},
    ]


def test_what_a_reason_is_about() -> None:
    polite, price, short = verdicts("nnn", options())
    assert SCORER.weight(polite) > SCORER.weight(price) > SCORER.weight(short) > 0
    assert [SCORER.weight(one) for one in verdicts("yyy", options())] == [0, 0, 0]
    assert SCORER.describe(polite) == "criterion 1, required and not met"
    assert SCORER.describe(price) == "criterion 2, not met"
