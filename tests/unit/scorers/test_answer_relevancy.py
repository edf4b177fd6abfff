from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from app.domain.request import Strategy
from app.domain.scoring import scaled
from app.judge.segment import Segment
from app.judge.verdict import Verdict
from app.scorers.answer_relevancy import SCORER, AnswerRelevancyOptions
from tests.unit.scorers.verdicts import verdict

YES, UNSURE, NO = (verdict(verdict=label) for label in ("yes", "unsure", "no"))
OPTIONS = st.builds(AnswerRelevancyOptions, uncertainty_weight=st.floats(0, 1), scale=st.floats(0.001, 1_000_000))


@pytest.mark.parametrize(
    ("yes", "unsure", "no", "options", "score"),
    [
        (1, 0, 0, {}, 1.0),
        (0, 1, 0, {}, 0.3),
        (0, 0, 1, {}, 0.0),
        (2, 1, 1, {}, 0.575),
        (1, 1, 1, {}, 0.4333),
        (1, 1, 0, {"uncertaintyWeight": 0}, 0.5),
        (1, 1, 0, {"uncertaintyWeight": 1}, 1.0),
    ],
)
def test_worked_examples(yes: int, unsure: int, no: int, options: dict[str, Any], score: float) -> None:
    verdicts = [YES] * yes + [UNSURE] * unsure + [NO] * no
    value = SCORER.value(verdicts, AnswerRelevancyOptions.model_validate(options))
    assert value is not None
    assert scaled(value, 1.0) == score


def test_no_statements_no_score() -> None:
    assert SCORER.value([], AnswerRelevancyOptions()) is None


@given(st.lists(st.sampled_from([YES, UNSURE, NO]), min_size=1), OPTIONS)
def test_the_score_is_within_its_scale_and_moves_the_right_way(
    verdicts: list[Verdict], options: AnswerRelevancyOptions
) -> None:
    def value(*more: Verdict) -> float:
        found = SCORER.value([*verdicts, *more], options)
        assert found is not None
        return found

    assert 0.0 <= scaled(value(), options.scale) <= options.scale
    assert value(YES) >= value() >= value(NO)
    assert value(YES) >= value(UNSURE) >= value(NO)


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_options_out_of_range_are_refused(weight: float) -> None:
    with pytest.raises(ValidationError):
        AnswerRelevancyOptions.model_validate({"uncertaintyWeight": weight})


def test_labels_are_read() -> None:
    for assessment in SCORER.inquiries[0].assessments.values():
        ((field, labels),) = assessment.fields.items()
        read = {label: assessment.read({field: label}) for label in labels}
        assert read == {**{label: {"verdict": label} for label in ("yes", "unsure", "no")}, "none": None}
    assert SCORER.inquiries[0].assessments[Strategy.LABELS].reasons is False


def test_step_results_fit_their_published_schemas() -> None:
    preprocess = SCORER.selected([Segment(0, 5, "Words")]).model_dump(mode="json")  # type: ignore[misc]
    assert preprocess == {"statements": ["Words"], "items": [{"statement": "Words", "span": {"start": 0, "end": 5}}]}
    Draft202012Validator(SCORER.step_schemas["preprocessStepResult"]).validate(preprocess)
    analyze = SCORER.assessed([YES, UNSURE, NO._replace(reason=None)]).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(analyze)
    assert [one["verdict"] for one in analyze["verdicts"]] == ["yes", "unsure", "no"]


def test_what_a_reason_is_about() -> None:
    assert SCORER.weight(NO) > SCORER.weight(UNSURE) > SCORER.weight(YES) == 0
    assert [SCORER.describe(found) for found in (NO, UNSURE)] == ["not relevant", "perhaps relevant"]
