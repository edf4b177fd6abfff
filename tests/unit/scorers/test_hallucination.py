import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options, Strategy
from app.domain.scoring import scaled
from app.judge.verdict import Verdict
from app.scorers.hallucination import SCORER
from tests.unit.scorers.verdicts import verdict

CLEAN = verdict(verdict="no")
CONTRADICTED, UNSUPPORTED = (verdict(verdict="yes", kind=kind) for kind in ("contradicted", "unsupported"))
ASSESSMENTS = SCORER.inquiries[0].assessments


@pytest.mark.parametrize(
    ("contradicted", "unsupported", "clean", "score"),
    [
        (0, 0, 0, 0.0),
        (0, 0, 3, 0.0),
        (1, 0, 0, 1.0),
        (0, 1, 1, 0.5),
        (1, 1, 1, 0.6667),
        (1, 0, 2, 0.3333),
        (1, 2, 5, 0.375),
    ],
)
def test_worked_examples(contradicted: int, unsupported: int, clean: int, score: float) -> None:
    verdicts = [CONTRADICTED] * contradicted + [UNSUPPORTED] * unsupported + [CLEAN] * clean
    value = SCORER.value(verdicts, Options())
    assert value is not None
    assert scaled(value, 1.0) == score


def test_a_text_that_hardly_claims_anything_scores_little() -> None:
    # No claim at all with 0.9: 0.06 / 0.1 x (1 - 0.9).
    likely = [UNSUPPORTED._replace(share=0.06), CLEAN._replace(share=0.04)]
    assert SCORER.value(likely, Options()) == pytest.approx(0.06)
    assert SCORER.value([CLEAN._replace(share=0.0)], Options()) == 0.0


@given(st.lists(st.sampled_from([CLEAN, CONTRADICTED, UNSUPPORTED])), st.floats(0.001, 1_000_000))
def test_the_score_is_within_its_scale_and_moves_the_right_way(verdicts: list[Verdict], scale: float) -> None:
    def value(*more: Verdict) -> float:
        found = SCORER.value([*verdicts, *more], Options())
        assert found is not None
        return found

    assert 0.0 <= scaled(value(), scale) <= scale
    assert value(CLEAN) <= value() <= value(CONTRADICTED) == value(UNSUPPORTED)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.0, "no hallucination"),
        (0.05, "a few claims without ground"),
        (0.35, "many claims without ground"),
        (0.95, "mostly hallucinated"),
        (1.0, "hallucinated throughout"),
    ],
)
def test_bands(value: float, name: str) -> None:
    assert SCORER.interpret(value) == name


READ = {
    "supported": {"verdict": "no"},
    "opinion": {"verdict": "no"},
    "contradicted": {"verdict": "yes", "kind": "contradicted"},
    "unsupported": {"verdict": "yes", "kind": "unsupported"},
    "none": None,
}


def test_labels_are_read() -> None:
    for strategy, field in (
        (Strategy.THREE_STEP, "verdict"),
        (Strategy.SINGLE_CALL, "verdict"),
        (Strategy.LABELS, "label"),
    ):
        assessment = ASSESSMENTS[strategy]
        for label in assessment.fields[field]:
            assert assessment.read({field: label}) == READ[label]
    assert set(ASSESSMENTS[Strategy.LABELS].fields["label"]) == set(READ)


def test_step_results_fit_their_published_schemas() -> None:
    verdicts = [found._replace(cited=(2,)) for found in (CLEAN, CONTRADICTED, UNSUPPORTED._replace(reason=None))]
    analyze = SCORER.assessed(verdicts).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(analyze)
    assert [(one["verdict"], one["kind"], one["passages"]) for one in analyze["verdicts"]] == [
        ("no", None, [2]),
        ("yes", "contradicted", [2]),
        ("yes", "unsupported", []),
    ]


def test_what_a_reason_is_about() -> None:
    assert SCORER.weight(CONTRADICTED) > SCORER.weight(UNSUPPORTED) > SCORER.weight(CLEAN) == 0
    assert SCORER.describe(UNSUPPORTED) == "unsupported"
