import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options
from app.domain.scoring import scaled
from app.judge.verdict import Verdict
from app.scorers.noise_sensitivity import DIMENSIONS, IMPACTS, SCORER
from tests.unit.judge.runs import request_of
from tests.unit.scorers.verdicts import verdict

NONE, MINIMAL, MODERATE, SIGNIFICANT, SEVERE = ALL = tuple(verdict(impact=impact) for impact in IMPACTS)
ISSUE, CLEAN = (verdict(issue=label) for label in ("yes", "no"))


@pytest.mark.parametrize(
    ("verdicts", "score"),
    [
        ([NONE] * 5, 1.0),
        ([MINIMAL] * 5, 0.85),
        ([MODERATE] * 5, 0.6),
        ([SIGNIFICANT] * 5, 0.3),
        ([SEVERE] * 5, 0.1),
        ([NONE, NONE, MINIMAL, MODERATE, SIGNIFICANT], 0.75),
        ([NONE, NONE, MINIMAL, MODERATE, SIGNIFICANT, ISSUE, ISSUE, CLEAN], 0.55),
        ([NONE] * 5 + [ISSUE] * 3, 0.7),
        ([NONE] * 5 + [ISSUE] * 9, 0.7),
        ([SEVERE] * 5 + [ISSUE] * 3, 0.0),
    ],
)
def test_worked_examples(verdicts: list[Verdict], score: float) -> None:
    value = SCORER.value(verdicts, Options())
    assert value is not None
    assert scaled(value, 1.0) == score


def test_likely_verdicts_count_by_their_shares() -> None:
    verdicts = [NONE._replace(share=0.5), SIGNIFICANT._replace(share=0.5), *[NONE] * 4, ISSUE._replace(share=0.5)]
    assert SCORER.value(verdicts, Options()) == pytest.approx((0.5 + 0.15 + 4) / 5 - 0.05)


@given(
    st.lists(st.sampled_from(ALL), min_size=5, max_size=5),
    st.lists(st.sampled_from([ISSUE, CLEAN])),
    st.floats(0.001, 1_000_000),
)
def test_the_score_is_within_its_scale_and_moves_the_right_way(
    impacts: list[Verdict], statements: list[Verdict], scale: float
) -> None:
    def value(*found: Verdict) -> float:
        number = SCORER.value([*found, *statements], Options())
        assert number is not None
        return number

    assert 0.0 <= scaled(value(*impacts), scale) <= scale
    by_impact = [value(one, *impacts[1:]) for one in ALL]
    assert by_impact == sorted(by_impact, reverse=True)
    assert value(*impacts) >= value(*impacts, ISSUE)
    assert value(*impacts) == value(*impacts, CLEAN)


def test_what_is_shown() -> None:
    dimensions, statements = SCORER.inquiries
    asked = request_of("Tea.", ground_truth="Tea!", noisy_input="Tae?", input="Tea?")
    assert [unit.known["dimension"] for unit in dimensions.subject(asked, Options()).units] == list(DIMENSIONS)
    for inquiry, marks in ((dimensions, "QNGA"), (statements, "QNG")):
        for assessment in inquiry.assessments.values():
            texts = {one.mark[0]: list(one.texts(asked, Options())) for one in assessment.view.exhibits}
            assert texts == {mark: [{"Q": "Tea?", "N": "Tae?", "G": "Tea!", "A": "Tea."}[mark]] for mark in marks}
            assert not assessment.view.piecewise
    bare = request_of("Tea.")
    assert [list(one.texts(bare, Options())) for one in assessment.view.exhibits] == [[""]] * 3


def test_labels_are_read() -> None:
    dimensions, statements = SCORER.inquiries
    for inquiry, name in ((dimensions, "impact"), (statements, "issue")):
        for assessment in inquiry.assessments.values():
            ((field, labels),) = assessment.fields.items()
            assert [assessment.read({field: label}) for label in labels] == [{name: label} for label in labels]


def test_step_results_fit_their_published_schema() -> None:
    units = SCORER.inquiries[0].subject(request_of("Tea."), Options()).units
    impacts = [one._replace(item=unit) for one, unit in zip(ALL, units, strict=True)]
    document = SCORER.assessed([*impacts, ISSUE, CLEAN]).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(document)
    assert [(one["dimension"], one["impact"]) for one in document["verdicts"]] == list(
        zip(DIMENSIONS, IMPACTS, strict=True)
    )
    assert document["issues"] == [
        {"verdict": "issue", "reason": "Why.", "statement": "Words", "span": {"start": 4, "end": 9}}
    ]
    assert SCORER.describe(impacts[4]) == "groundedness, severe impact"
    assert SCORER.describe(ISSUE) == "from the noise"


def test_what_a_reason_is_about() -> None:
    weights = [SCORER.weight(found) for found in ALL]
    assert weights == sorted(set(weights))
    assert SCORER.weight(ISSUE) > weights[0] == SCORER.weight(CLEAN) == 0
