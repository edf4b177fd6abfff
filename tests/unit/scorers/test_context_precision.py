import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.domain.request import Options
from app.domain.scoring import scaled
from app.judge.verdict import Verdict
from app.scorers.context_precision import SCORER
from tests.unit.scorers.verdicts import placed

RANKINGS = st.lists(st.booleans(), max_size=30)


def ranked(useful: list[bool]) -> list[Verdict]:
    return [placed(place, verdict="yes" if one else "no") for place, one in enumerate(useful)]


def value(useful: list[bool]) -> float:
    found = SCORER.value(ranked(useful), Options())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ranking", "score"),
    [
        ("", 0.0),
        ("-", 0.0),
        ("+", 1.0),
        ("++", 1.0),
        ("+-", 1.0),
        ("-+", 0.5),
        ("+-+", 0.8333),  # (1/1 + 2/3) / 2
        ("--+", 0.3333),
        ("-++-+", 0.5889),  # (1/2 + 2/3 + 3/5) / 3
    ],
)
def test_worked_examples(ranking: str, score: float) -> None:
    assert scaled(value([sign == "+" for sign in ranking]), 1.0) == score


def test_blank_passages_keep_their_rank() -> None:
    assert SCORER.value([placed(1, verdict="yes")], Options()) == 0.5


@given(RANKINGS)
def test_useful_passages_that_come_earlier_never_lower_the_score(useful: list[bool]) -> None:
    assert 0.0 <= value(useful) <= 1.0
    assert value([*useful, False]) == value(useful)
    assert value(sorted(useful, reverse=True)) == float(any(useful))
    for place in range(1, len(useful)):
        if useful[place] and not useful[place - 1]:
            earlier = [*useful[: place - 1], True, False, *useful[place + 1 :]]
            assert value(earlier) >= value(useful)


def test_labels_are_read() -> None:
    for assessment in SCORER.inquiries[0].assessments.values():
        ((field, labels),) = assessment.fields.items()
        assert [assessment.read({field: label}) for label in labels] == [{"verdict": "yes"}, {"verdict": "no"}]


def test_step_results_fit_their_published_schema() -> None:
    analyze = SCORER.assessed([placed(0, verdict="yes"), placed(2, verdict="no")._replace(reason=None)])
    document = analyze.model_dump(mode="json")
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(document)
    assert [(one["number"], one["verdict"]) for one in document["verdicts"]] == [(1, "yes"), (3, "no")]


def test_what_a_reason_is_about() -> None:
    useful, useless = ranked([True, False])
    assert (SCORER.weight(useful), SCORER.weight(useless)) == (0.0, 1.0)
    assert SCORER.describe(useless) == "passage 2, of no use"
