import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from app.domain.request import Strategy
from app.domain.scoring import scaled
from app.judge.segment import Segment
from app.judge.verdict import Verdict
from app.scorers.summarization import SCORER, SummarizationOptions, spread
from tests.unit.scorers.verdicts import verdict

YES, NO, UNSURE = (verdict(alignment=label) for label in ("yes", "no", "unsure"))
ANSWERED, LEFT_OUT = (verdict(coverage=label) for label in ("yes", "no"))
ALL = [YES, NO, UNSURE, ANSWERED, LEFT_OUT]
CLAIMS, QUESTIONS = (inquiry.assessments for inquiry in SCORER.inquiries)


def value(*verdicts: Verdict) -> float:
    found = SCORER.value(verdicts, SummarizationOptions())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("verdicts", "score"),
    [
        ([YES, ANSWERED], 1.0),
        ([NO, ANSWERED], 0.0),
        ([UNSURE, ANSWERED], 0.0),
        ([YES, LEFT_OUT], 0.0),
        # Three of four claims, two of five questions: min(0.75, 0.4).
        ([YES, YES, YES, UNSURE, *[ANSWERED] * 2, *[LEFT_OUT] * 3], 0.4),
        ([YES, NO, UNSURE, *[ANSWERED] * 3, LEFT_OUT], 0.3333),
        # One part without anything to judge leaves the other.
        ([YES, YES, NO], 0.6667),
        ([ANSWERED, LEFT_OUT], 0.5),
    ],
)
def test_worked_examples(verdicts: list[Verdict], score: float) -> None:
    assert scaled(value(*verdicts), 1.0) == score


def test_nothing_to_compare_no_score() -> None:
    assert SCORER.value([], SummarizationOptions()) is None


@given(st.lists(st.sampled_from(ALL), min_size=1), st.floats(0.001, 1_000_000))
def test_the_score_is_within_its_scale_and_moves_the_right_way(verdicts: list[Verdict], scale: float) -> None:
    now = value(*verdicts)
    assert 0.0 <= scaled(now, scale) <= scale
    for better, worse in ((YES, NO), (YES, UNSURE), (ANSWERED, LEFT_OUT)):
        assert value(*verdicts, better) >= value(*verdicts, worse)
        assert value(*verdicts, worse) <= now
    both = [*verdicts, YES, ANSWERED]
    assert value(*both, YES) >= value(*both)
    assert value(*both, ANSWERED) >= value(*both)


@given(st.lists(st.floats(0.01, 1.0), min_size=1), st.lists(st.floats(0.01, 1.0), min_size=1))
def test_units_count_for_their_shares(right: list[float], wrong: list[float]) -> None:
    verdicts = [YES._replace(share=share) for share in right] + [NO._replace(share=share) for share in wrong]
    assert value(*verdicts, ANSWERED) == pytest.approx(sum(right) / (sum(right) + sum(wrong)))


@pytest.mark.parametrize(
    ("items", "most", "chosen"),
    [
        (range(3), 3, [0, 1, 2]),
        (range(10), 2, [2, 7]),
        (range(10), 3, [1, 5, 8]),
        (range(9), 1, [4]),
        (range(0), 1, []),
    ],
)
def test_what_is_spread(items: range, most: int, chosen: list[int]) -> None:
    assert list(spread(items, most)) == chosen


@given(st.integers(0, 500), st.integers(1, 50))
def test_choices_stand_in_order_and_equally_far_apart(count: int, most: int) -> None:
    chosen = list(spread(range(count), most))
    assert len(chosen) == min(count, most)
    gaps = [later - earlier for earlier, later in itertools.pairwise(chosen)]
    assert all(gap > 0 for gap in gaps)
    assert max(gaps, default=0) - min(gaps, default=0) <= 1
    assert not chosen or chosen[0] - (count - 1 - chosen[-1]) in (-1, 0, 1)


@pytest.mark.parametrize("most", [0, 51, 2.5, "10"])
def test_how_many_questions_there_may_be(most: object) -> None:
    with pytest.raises(ValidationError):
        SummarizationOptions.model_validate({"maxQuestions": most}, strict=True)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.0, "wrong or empty"),
        (0.0001, "poor"),
        (0.4, "partly right and complete"),
        (0.9999, "mostly right and complete"),
        (1.0, "right and complete"),
    ],
)
def test_bands(value: float, name: str) -> None:
    assert SCORER.interpret(value) == name


def test_labels_are_read() -> None:
    for part, assessments in (("alignment", CLAIMS), ("coverage", QUESTIONS)):
        for strategy, assessment in assessments.items():
            ((field, labels),) = assessment.fields.items()
            assert ("none" in labels) == (strategy is not Strategy.THREE_STEP)
            for label in labels:
                assert assessment.read({field: label}) == (None if label == "none" else {part: label})


def test_step_results_fit_their_published_schemas() -> None:
    assert SCORER.selected is not None
    unit = Segment(0, 5, "Words")
    preprocess = SCORER.selected([unit], [unit, unit]).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["preprocessStepResult"]).validate(preprocess)
    assert preprocess["claims"] == ["Words"]
    assert preprocess["questions"] == [{"question": "Words", "inputSpan": {"start": 0, "end": 5}}] * 2
    verdicts = [YES, LEFT_OUT, NO._replace(reason=None), UNSURE, ANSWERED]
    analyze = SCORER.assessed(verdicts).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(analyze)
    assert (analyze["alignment"], analyze["coverage"]) == (0.3333, 0.5)
    assert [(one["verdict"], one["claim"], one["span"]["start"]) for one in analyze["verdicts"]] == [
        ("yes", "Words", 4),
        ("no", "Words", 4),
        ("unsure", "Words", 4),
    ]
    assert [(one["verdict"], one["question"], one["inputSpan"]["end"]) for one in analyze["questions"]] == [
        ("no", "Words", 9),
        ("yes", "Words", 9),
    ]
    assert SCORER.assessed([]).model_dump() == {"alignment": None, "coverage": None, "verdicts": [], "questions": []}


def test_what_a_reason_is_about() -> None:
    assert SCORER.weight(YES) == SCORER.weight(ANSWERED) == 0.0
    assert SCORER.weight(NO) == SCORER.weight(LEFT_OUT) > SCORER.weight(UNSURE) > 0.0
    assert [SCORER.describe(found) for found in (NO, UNSURE, LEFT_OUT)] == [
        "contradicted by the source",
        "not found in the source",
        "not answered by the summary",
    ]
