import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options, Strategy
from app.domain.scoring import scaled
from app.judge.verdict import Verdict
from app.scorers.context_relevance import RELEVANCES, SCORER
from tests.unit.scorers.verdicts import placed, verdict

USED, UNUSED = (verdict(relevance="high", used=used) for used in ("yes", "no"))
MEDIUM, LOW, NONE = (verdict(relevance=relevance) for relevance in RELEVANCES[1:])
ASSESSMENTS = SCORER.inquiries[0].assessments


@pytest.mark.parametrize(
    ("verdicts", "score"),
    [
        ([USED], 1.0),
        ([UNUSED], 0.9),
        ([MEDIUM], 0.7),
        ([LOW], 0.3),
        ([NONE], 0.0),
        ([USED, MEDIUM, LOW, NONE], 0.5),
        ([UNUSED, MEDIUM, LOW, NONE], 0.4),
        ([USED, UNUSED, UNUSED], 0.8),
        ([UNUSED] * 12, 0.0),
        ([USED, LOW, LOW], 0.5333),
    ],
)
def test_worked_examples(verdicts: list[Verdict], score: float) -> None:
    value = SCORER.value(verdicts, Options())
    assert value is not None
    assert scaled(value, 1.0) == score


def test_no_passages_no_score() -> None:
    assert SCORER.value([], Options()) is None


@given(st.lists(st.sampled_from([USED, UNUSED, MEDIUM, LOW, NONE]), min_size=1), st.floats(0.001, 1_000_000))
def test_the_score_is_within_its_scale_and_moves_the_right_way(verdicts: list[Verdict], scale: float) -> None:
    def value(*found: Verdict) -> float:
        number = SCORER.value(found, Options())
        assert number is not None
        return number

    assert 0.0 <= scaled(value(*verdicts), scale) <= scale
    best, *worse = [value(one, *verdicts[1:]) for one in (USED, MEDIUM, LOW, NONE)]
    assert best >= worse[0] >= worse[1] >= worse[2]
    assert best >= value(UNUSED, *verdicts[1:])
    assert value(USED, *verdicts) >= value(*verdicts) >= value(*verdicts, NONE)


def test_labels_are_read() -> None:
    for strategy in (Strategy.THREE_STEP, Strategy.SINGLE_CALL):
        read = ASSESSMENTS[strategy].read
        assert read({"relevance": "high", "used": "no"}) == {"relevance": "high", "used": "no"}
        assert read({"relevance": "low", "used": "yes"}) == {"relevance": "low"}
    labels = ASSESSMENTS[Strategy.LABELS]
    assert [labels.read({"label": label}) for label in labels.fields["label"]] == [
        {"relevance": "high", "used": "yes"},
        {"relevance": "high", "used": "no"},
        {"relevance": "medium"},
        {"relevance": "low"},
        {"relevance": "none"},
    ]


def test_step_results_fit_their_published_schema() -> None:
    verdicts = [USED, UNUSED, placed(3, relevance="low")._replace(reason=None)]
    document = SCORER.assessed(verdicts).model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(document)
    assert [(one["number"], one["relevance"], one["used"]) for one in document["verdicts"]] == [
        (1, "high", True),
        (1, "high", False),
        (4, "low", None),
    ]


def test_what_a_reason_is_about() -> None:
    weights = [SCORER.weight(found) for found in (USED, UNUSED, MEDIUM, LOW, NONE)]
    assert weights == sorted(weights)
    assert weights[0] == 0
    assert SCORER.describe(UNUSED) == "passage 1, relevance high, left unused"
    assert SCORER.describe(LOW) == "passage 1, relevance low"
