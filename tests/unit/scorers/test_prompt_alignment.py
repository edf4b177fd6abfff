from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options, Strategy
from app.domain.scoring import scaled
from app.judge.segment import Segment
from app.judge.verdict import Verdict
from app.scorers.prompt_alignment import DIMENSIONS, SCORER, WEIGHTS
from tests.unit.scorers.verdicts import placed, verdict

GRADES = ("full", "partial", "none")
YES, NO = (verdict(requirement=label) for label in ("yes", "no"))
REQUIREMENTS, GRADED = (inquiry.assessments for inquiry in SCORER.inquiries)
ANY_GRADE = st.sampled_from(GRADES)


def graded(**grades: str) -> list[Verdict]:
    return [placed(DIMENSIONS.index(dimension), dimension=grade) for dimension, grade in grades.items()]


def value(verdicts: list[Verdict]) -> float:
    found = SCORER.value(verdicts, Options())
    assert found is not None
    return found


ALL = dict.fromkeys(DIMENSIONS, "full")


@pytest.mark.parametrize(
    ("yes", "no", "grades", "score"),
    [
        (3, 0, ALL, 1.0),
        (0, 3, dict.fromkeys(DIMENSIONS, "none"), 0.0),
        (0, 3, ALL, 0.7),
        (2, 1, ALL, 0.9),
        # 0.4 * 1 + 0.3 * 2/3 + 0.2 * 0.5 + 0.1 * (1 + 0) / 2
        (2, 1, {**ALL, "completeness": "partial", "format": "none"}, 0.75),
        (1, 1, {**ALL, "intent": "partial", "tone": "partial"}, 0.625),
        # Without requirements the rest counts: (0.4 * 0.5 + 0.2 * 1 + 0.1 * 1) / 0.7
        (0, 0, {**ALL, "intent": "partial"}, 0.7143),
        (0, 0, ALL, 1.0),
        (1, 0, {"tone": "full"}, 1.0),
        # Nothing about tone: format alone is the tenth.
        (1, 1, {"intent": "full", "completeness": "full", "format": "none"}, 0.75),
    ],
)
def test_worked_examples(yes: int, no: int, grades: dict[str, str], score: float) -> None:
    assert scaled(value([YES] * yes + [NO] * no + graded(**grades)), 1.0) == score


def test_the_weights_are_a_whole() -> None:
    assert fsum(WEIGHTS.values()) == 1.0


@pytest.mark.parametrize("verdicts", [[], graded(tone="full", format="none", completeness="full")])
def test_a_prompt_that_asks_for_nothing_has_no_score(verdicts: list[Verdict]) -> None:
    assert SCORER.value(verdicts, Options()) is None


@given(
    st.lists(st.sampled_from([YES, NO])),
    st.dictionaries(st.sampled_from(DIMENSIONS), ANY_GRADE).map(lambda grades: {"intent": "full", **grades}),
    st.floats(0.001, 1_000_000),
)
def test_the_score_is_within_its_scale_and_moves_the_right_way(
    requirements: list[Verdict], grades: dict[str, str], scale: float
) -> None:
    now = value([*requirements, *graded(**grades)])
    assert 0.0 <= scaled(now, scale) <= scale
    assert value([*requirements, YES, *graded(**grades)]) >= now - 1e-12
    assert value([*requirements, NO, *graded(**grades)]) <= now + 1e-12
    for dimension in grades:
        best, middle, worst = (value([*requirements, *graded(**{**grades, dimension: grade})]) for grade in GRADES)
        assert best > middle > worst


@given(st.lists(st.tuples(st.sampled_from([YES, NO]), st.floats(0.01, 1.0)), min_size=1))
def test_a_requirement_counts_for_its_share(requirements: list[tuple[Verdict, float]]) -> None:
    verdicts = [found._replace(share=share) for found, share in requirements]
    met = fsum(found.share for found in verdicts if found.labels["requirement"] == "yes")
    assert value(verdicts) == pytest.approx(met / fsum(found.share for found in verdicts))


def test_labels_are_read() -> None:
    for assessments, field, dropped in ((REQUIREMENTS, "requirement", {"none", "not_applicable"}),):
        for assessment in assessments.values():
            ((key, labels),) = assessment.fields.items()
            assert labels[:2] == ("yes", "no")
            for label in labels:
                assert assessment.read({key: label}) == (None if label in dropped else {field: label})
    for assessment in GRADED.values():
        ((key, labels),) = assessment.fields.items()
        assert labels == (*GRADES, "not_applicable")
        for label in labels:
            assert assessment.read({key: label}) == (None if label == "not_applicable" else {"dimension": label})
    assert [Strategy(strategy) for strategy in REQUIREMENTS] == list(Strategy)


def test_step_results_fit_their_published_schemas() -> None:
    assert SCORER.selected is not None
    preprocess = SCORER.selected([Segment(3, 9, "Be short")], [Segment(0, 6, "intent")]).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["preprocessStepResult"]).validate(preprocess)
    assert preprocess == {"requirements": [{"requirement": "Be short", "inputSpan": {"start": 3, "end": 9}}]}
    verdicts = [YES, NO._replace(reason=None), *graded(tone="partial")]
    analyze = SCORER.assessed(verdicts).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(analyze)
    assert [(one["verdict"], one["requirement"], one["inputSpan"]) for one in analyze["requirements"]] == [
        ("yes", "Words", {"start": 4, "end": 9}),
        ("no", "Words", {"start": 4, "end": 9}),
    ]
    assert analyze["dimensions"] == [{"dimension": "tone", "verdict": "partial", "reason": "Why."}]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.0, "does not follow the prompt"),
        (0.35, "partly follows the prompt"),
        (0.75, "mostly follows the prompt"),
        (1.0, "follows the prompt in everything"),
    ],
)
def test_bands(value: float, name: str) -> None:
    assert SCORER.interpret(value) == name


def test_what_a_reason_is_about() -> None:
    missed = graded(intent="none", completeness="partial", tone="none")
    weights = [SCORER.weight(found) for found in (missed[0], NO, missed[1], missed[2], YES)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] == SCORER.weight(graded(format="full")[0]) == 0.0
    assert [SCORER.describe(found) for found in (NO, *missed)] == [
        "not fulfilled",
        "intent not met",
        "completeness partly met",
        "tone not met",
    ]
