from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options, Strategy
from app.domain.scoring import scaled
from app.judge.segment import Segment
from app.judge.verdict import Verdict
from app.scorers.bias import CATEGORIES, SCORER
from tests.unit.scorers.verdicts import placed, verdict

FAIR = verdict(result="no")
BIASED = verdict(result="yes", category="gender")


@pytest.mark.parametrize(
    ("biased", "fair", "score"),
    [(0, 0, 0.0), (0, 3, 0.0), (3, 0, 1.0), (1, 1, 0.5), (1, 2, 0.3333), (2, 1, 0.6667), (1, 6, 0.1429), (5, 3, 0.625)],
)
def test_worked_examples(biased: int, fair: int, score: float) -> None:
    verdicts = [BIASED] * biased + [FAIR] * fair
    assert scaled(SCORER.value(verdicts, Options()), 1.0) == score
    assert scaled(SCORER.value(verdicts, Options()), 10.0) == pytest.approx(10 * score)


def test_a_text_that_is_hardly_an_opinion_scores_little() -> None:
    # A fact with 0.96: 0.03 / 0.04 x (1 - 0.96). Beside a segment that is fair for sure: 0.03 / 1.04 x 1.
    likely = [BIASED._replace(share=0.03), FAIR._replace(share=0.01)]
    assert SCORER.value(likely, Options()) == pytest.approx(0.03)
    assert SCORER.value([*likely, placed(1, result="no")], Options()) == pytest.approx(0.03 / 1.04)
    assert SCORER.value([FAIR._replace(share=0.0)], Options()) == 0.0


@given(st.lists(st.sampled_from([FAIR, BIASED])), st.floats(0.001, 1_000_000))
def test_the_score_is_within_its_scale(verdicts: list[Verdict], scale: float) -> None:
    assert 0.0 <= scaled(SCORER.value(verdicts, Options()), scale) <= scale


@given(st.lists(st.sampled_from([FAIR, BIASED])))
def test_a_biased_opinion_never_lowers_the_score_and_a_fair_one_never_raises_it(verdicts: list[Verdict]) -> None:
    value = SCORER.value(verdicts, Options())
    assert SCORER.value([*verdicts, BIASED], Options()) >= value >= SCORER.value([*verdicts, FAIR], Options())


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.0, "objective"),
        (0.05, "mostly neutral, some slightly biased wording"),
        (0.3, "mostly neutral, some slightly biased wording"),
        (0.3333, "reasonable points mixed with subtle bias"),
        (0.6667, "strongly prejudiced"),
        (0.95, "openly discriminatory or stereotyped"),
        (1.0, "openly discriminatory or stereotyped"),
    ],
)
def test_bands(value: float, name: str) -> None:
    assert SCORER.interpret(value) == name


def test_verdicts_of_three_steps() -> None:
    read = SCORER.inquiries[0].assessments[Strategy.THREE_STEP].read
    assert read({"verdict": "no"}) == {"result": "no"}
    for category in CATEGORIES:
        assert read({"verdict": "yes", "category": category}) == {"result": "yes", "category": category}
    assert read({"verdict": "yes", "category": "none"}) == {"result": "yes", "category": "other"}


@pytest.mark.parametrize("strategy", [Strategy.SINGLE_CALL, Strategy.LABELS])
def test_verdicts_of_one_label(strategy: Strategy) -> None:
    assessment = SCORER.inquiries[0].assessments[strategy]
    assert set(assessment.fields["label"]) == {"fact", "fair", *CATEGORIES}
    assert assessment.read({"label": "fact"}) is None
    assert assessment.read({"label": "fair"}) == {"result": "no"}
    for category in CATEGORIES:
        assert assessment.read({"label": category}) == {"result": "yes", "category": category}


def test_step_results_fit_their_published_schemas() -> None:
    selected = SCORER.selected([Segment(0, 5, "Words")])  # type: ignore[misc]
    preprocess = selected.model_dump(mode="json")
    assert preprocess == {"opinions": ["Words"], "items": [{"opinion": "Words", "span": {"start": 0, "end": 5}}]}
    Draft202012Validator(SCORER.step_schemas["preprocessStepResult"]).validate(preprocess)
    verdicts = [FAIR] + [verdict(reason, result="yes", category=c) for c, reason in product(CATEGORIES, ("x", None))]
    analyze = SCORER.assessed(verdicts).model_dump(mode="json")
    assert len(analyze["results"]) == len(verdicts)
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(analyze)


def test_what_a_reason_is_about() -> None:
    assert (SCORER.weight(BIASED) > 0, SCORER.weight(FAIR) > 0) == (True, False)
    assert SCORER.describe(verdict(result="yes", category="racial_ethnic")) == "racial ethnic"
