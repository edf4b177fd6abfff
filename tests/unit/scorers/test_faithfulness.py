import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options, Strategy
from app.domain.scoring import scaled
from app.judge.segment import Segment
from app.judge.verdict import Verdict
from app.scorers.faithfulness import SCORER
from tests.unit.scorers.verdicts import verdict

YES, NO, UNSURE = (verdict(verdict=label) for label in ("yes", "no", "unsure"))
ASSESSMENTS = SCORER.inquiries[0].assessments


@pytest.mark.parametrize(
    ("yes", "no", "unsure", "score"),
    [
        (1, 0, 0, 1.0),
        (0, 1, 0, 0.0),
        (0, 0, 1, 0.0),
        (2, 1, 1, 0.5),
        (2, 0, 1, 0.6667),
        (1, 1, 1, 0.3333),
        (5, 2, 1, 0.625),
    ],
)
def test_worked_examples(yes: int, no: int, unsure: int, score: float) -> None:
    value = SCORER.value([YES] * yes + [NO] * no + [UNSURE] * unsure, Options())
    assert value is not None
    assert scaled(value, 1.0) == score


def test_no_claims_no_score() -> None:
    assert SCORER.value([], Options()) is None


@given(st.lists(st.sampled_from([YES, NO, UNSURE]), min_size=1), st.floats(0.001, 1_000_000))
def test_the_score_is_within_its_scale_and_moves_the_right_way(verdicts: list[Verdict], scale: float) -> None:
    def value(*more: Verdict) -> float:
        found = SCORER.value([*verdicts, *more], Options())
        assert found is not None
        return found

    assert 0.0 <= scaled(value(), scale) <= scale
    assert value(YES) >= value() >= value(NO) == value(UNSURE)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.0, "not supported by the context"),
        (0.0001, "hardly supported"),
        (0.5, "partly supported"),
        (0.6667, "mostly supported"),
        (0.9999, "mostly supported"),
        (1.0, "fully supported by the context"),
    ],
)
def test_bands(value: float, name: str) -> None:
    assert SCORER.interpret(value) == name


def test_labels_are_read() -> None:
    for strategy, field in (
        (Strategy.THREE_STEP, "verdict"),
        (Strategy.SINGLE_CALL, "verdict"),
        (Strategy.LABELS, "label"),
    ):
        assessment = ASSESSMENTS[strategy]
        for label in assessment.fields[field]:
            expected = None if label == "none" else {"verdict": label}
            assert assessment.read({field: label}) == expected
    assert "none" not in ASSESSMENTS[Strategy.THREE_STEP].fields["verdict"]


def test_step_results_fit_their_published_schemas() -> None:
    preprocess = SCORER.selected(Segment(0, 5, "Words") for _ in range(2)).model_dump(mode="json")  # type: ignore[misc]
    Draft202012Validator(SCORER.step_schemas["preprocessStepResult"]).validate(preprocess)
    verdicts = [YES._replace(cited=(1, 3)), NO._replace(reason=None), UNSURE._replace(cited=(2,))]
    analyze = SCORER.assessed(verdicts).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(analyze)
    assert [one["passages"] for one in analyze["verdicts"]] == [[1, 3], [], []]
    assert analyze["verdicts"][0]["claim"] == "Words"
    assert analyze["verdicts"][0]["span"] == {"start": 4, "end": 9}


def test_what_a_reason_is_about() -> None:
    assert SCORER.weight(NO) > SCORER.weight(UNSURE) > SCORER.weight(YES) == 0
    assert [SCORER.describe(found) for found in (NO, UNSURE)] == ["contradicted", "not found in the context"]
