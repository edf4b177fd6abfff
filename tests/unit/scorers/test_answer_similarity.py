from math import nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options
from app.domain.scoring import scaled
from app.judge.segment import Segment
from app.judge.verdict import Verdict
from app.scorers.answer_similarity import SCORER
from tests.unit.scorers.verdicts import verdict

EXACT, SEMANTIC, PARTIAL, MISSING, CONTRADICTED = UNITS = tuple(
    verdict(verdict=label) for label in ("exact", "semantic", "partial", "missing", "contradicted")
)
EXTRA, COVERED = (verdict(extra=label) for label in ("yes", "no"))


@pytest.mark.parametrize(
    ("verdicts", "score"),
    [
        ([EXACT], 1.0),
        ([SEMANTIC, COVERED], 1.0),
        ([PARTIAL], 0.5),
        ([MISSING], 0.0),
        ([CONTRADICTED], 0.0),
        ([EXACT, SEMANTIC, PARTIAL, MISSING], 0.625),
        ([EXACT, SEMANTIC, PARTIAL, MISSING, EXTRA, EXTRA, COVERED], 0.6),
        ([EXACT, SEMANTIC, CONTRADICTED], 0.3333),
        ([EXACT, CONTRADICTED, CONTRADICTED], 0.0),
        ([EXACT, *[EXTRA] * 4], 0.8),
        ([EXACT, *[EXTRA] * 9], 0.8),
        ([EXACT, EXACT, *[EXTRA] * 9], 0.9),
    ],
)
def test_worked_examples(verdicts: list[Verdict], score: float) -> None:
    value = SCORER.value(verdicts, Options())
    assert value is not None
    assert scaled(value, 1.0) == score


@pytest.mark.parametrize("verdicts", [[], [EXTRA, COVERED]])
def test_no_units_no_score(verdicts: list[Verdict]) -> None:
    assert SCORER.value(verdicts, Options()) is None


def test_likely_verdicts_count_by_their_shares() -> None:
    verdicts = [EXACT._replace(share=0.5), MISSING._replace(share=0.5), EXACT, EXTRA._replace(share=0.4)]
    assert SCORER.value(verdicts, Options()) == pytest.approx((0.5 + 1 - 0.02) / 2)


@given(
    st.lists(st.sampled_from(UNITS), min_size=1),
    st.lists(st.sampled_from([EXTRA, COVERED])),
    st.floats(0.001, 1_000_000),
)
def test_the_score_is_within_its_scale_and_moves_the_right_way(
    units: list[Verdict], statements: list[Verdict], scale: float
) -> None:
    def value(*found: Verdict) -> float:
        number = SCORER.value([*found, *statements], Options())
        assert number is not None
        return number

    assert 0.0 <= scaled(value(*units), scale) <= scale
    best, same, *worse = [value(one, *units[1:]) for one in UNITS]
    assert best == same
    assert best >= worse[0] >= worse[1] >= worse[2]
    assert nextafter(value(EXACT, *units), 2) >= value(*units)
    assert value(*units) >= value(*units, EXTRA)
    assert value(*units) == value(*units, COVERED)


def test_labels_are_read() -> None:
    units, statements = SCORER.inquiries
    for assessment in units.assessments.values():
        ((field, labels),) = assessment.fields.items()
        for label in labels:
            assert assessment.read({field: label}) == (None if label == "none" else {"verdict": label})
    for assessment in statements.assessments.values():
        ((field, labels),) = assessment.fields.items()
        assert [assessment.read({field: label}) for label in labels] == [{"extra": "no"}, {"extra": "yes"}]


def test_step_results_fit_their_published_schemas() -> None:
    preprocess = SCORER.selected([Segment(0, 5, "Words")], []).model_dump(mode="json")  # type: ignore[misc]
    assert preprocess["claims"] == ["Words"]
    Draft202012Validator(SCORER.step_schemas["preprocessStepResult"]).validate(preprocess)
    analyze = SCORER.assessed([*UNITS, EXTRA._replace(reason=None), COVERED]).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(analyze)
    assert [one["verdict"] for one in analyze["verdicts"]] == [one.labels["verdict"] for one in UNITS]
    assert analyze["extras"] == [
        {"verdict": "extra", "reason": None, "statement": "Words", "span": {"start": 4, "end": 9}}
    ]


def test_what_a_reason_is_about() -> None:
    weights = [SCORER.weight(found) for found in (COVERED, EXTRA, PARTIAL, MISSING, CONTRADICTED)]
    assert weights == sorted(set(weights))
    assert SCORER.weight(EXACT) == SCORER.weight(SEMANTIC) == weights[0] == 0
    assert [SCORER.describe(found) for found in (PARTIAL, EXTRA)] == ["partial", "added"]
