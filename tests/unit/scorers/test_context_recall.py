import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options, Strategy
from app.domain.scoring import scaled
from app.judge.exhibit import CONTEXT
from app.judge.segment import Segment
from app.judge.verdict import Verdict
from app.scorers.context_recall import SCORER
from tests.unit.judge.runs import request_of
from tests.unit.scorers.verdicts import verdict

YES, NO = (verdict(verdict=label) for label in ("yes", "no"))


@pytest.mark.parametrize(
    ("yes", "no", "score"), [(1, 0, 1.0), (0, 1, 0.0), (3, 1, 0.75), (2, 1, 0.6667), (1, 2, 0.3333)]
)
def test_worked_examples(yes: int, no: int, score: float) -> None:
    value = SCORER.value([YES] * yes + [NO] * no, Options())
    assert value is not None
    assert scaled(value, 1.0) == score


def test_no_claims_no_score() -> None:
    assert SCORER.value([], Options()) is None


def test_likely_support_counts_by_its_share() -> None:
    verdicts = [YES._replace(share=0.75), NO._replace(share=0.25), NO]
    assert SCORER.value(verdicts, Options()) == 0.375


@given(st.lists(st.sampled_from([YES, NO]), min_size=1), st.floats(0.001, 1_000_000))
def test_the_score_is_within_its_scale_and_moves_the_right_way(verdicts: list[Verdict], scale: float) -> None:
    def value(*more: Verdict) -> float:
        found = SCORER.value([*verdicts, *more], Options())
        assert found is not None
        return found

    assert 0.0 <= scaled(value(), scale) <= scale
    assert value(YES) >= value() >= value(NO)


def test_claims_of_the_ground_truth_are_judged_beside_the_context() -> None:
    (inquiry,) = SCORER.inquiries
    asked = request_of("The answer.", ground_truth="One. Two.", context=["One."])
    assert [unit.text for unit in inquiry.subject(asked, Options()).units] == ["One.", "Two."]
    assert SCORER.scored(asked) == "One. Two."
    assert SCORER.scored(request_of("The answer.")) == ""
    for strategy, assessment in inquiry.assessments.items():
        assert assessment.view.exhibits == (CONTEXT,)
        ((_, labels),) = assessment.fields.items()
        assert labels == (("yes", "no") if strategy is Strategy.THREE_STEP else ("yes", "no", "none"))


def test_step_results_fit_their_published_schemas() -> None:
    preprocess = SCORER.selected([Segment(0, 5, "Words")]).model_dump(mode="json")  # type: ignore[misc]
    Draft202012Validator(SCORER.step_schemas["preprocessStepResult"]).validate(preprocess)
    verdicts = [YES._replace(cited=(1, 3)), NO._replace(reason=None, cited=(2,))]
    analyze = SCORER.assessed(verdicts).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(analyze)
    assert [one["passages"] for one in analyze["verdicts"]] == [[1, 3], []]
    assert analyze["verdicts"][0]["claim"] == "Words"
    assert analyze["verdicts"][0]["span"] == {"start": 4, "end": 9}


def test_what_a_reason_is_about() -> None:
    assert SCORER.weight(NO) > SCORER.weight(YES) == 0
    assert SCORER.describe(NO) == "not in the context"
