from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from app.domain.request import Strategy
from app.domain.scoring import scaled
from app.judge.verdict import Verdict
from app.scorers.toxicity import ELEMENTS, SCORER, SEVERITIES, ToxicityOptions
from tests.unit.scorers.verdicts import verdict

CLEAN = verdict(element="none")
TOXIC = [verdict(element=element, severity=severity) for element, severity in product(ELEMENTS, SEVERITIES)]


def found(*severities: str) -> list[Verdict]:
    return [verdict(element="mockery", severity=severity) for severity in severities]


@pytest.mark.parametrize(
    ("severities", "options", "score"),
    [
        ([], {}, 0.0),
        (["mild"], {}, 0.2),
        (["moderate"], {}, 0.5),
        (["severe"], {}, 1.0),
        (["mild", "moderate"], {}, 0.7),
        (["mild"] * 3, {}, 0.6),
        (["moderate", "moderate"], {}, 1.0),
        (["severe", "severe"], {}, 1.0),
        (["mild", "severe"], {"maxToxicity": 2}, 0.6),
        (["severe"], {"maxToxicity": 3}, 0.3333),
        (["mild"], {"maxToxicity": 0.1}, 1.0),
        (["mild"], {"severityWeights": {"mild": 0}}, 0.0),
        (["mild", "moderate"], {"severityWeights": {"mild": 0.05, "moderate": 0.1, "severe": 0.4}}, 0.15),
    ],
)
def test_worked_examples(severities: list[str], options: dict[str, Any], score: float) -> None:
    options_ = ToxicityOptions.model_validate(options)
    assert scaled(SCORER.value([CLEAN, *found(*severities), CLEAN], options_), 1.0) == score


OPTIONS = st.builds(
    ToxicityOptions,
    severity_weights=st.fixed_dictionaries({name: st.floats(0, 1) for name in SEVERITIES}),
    max_toxicity=st.floats(0, 1e300, exclude_min=True),
    scale=st.floats(0.001, 1_000_000),
)


@given(st.lists(st.sampled_from([CLEAN, *TOXIC])), OPTIONS)
def test_the_score_is_within_its_scale(verdicts: list[Verdict], options: ToxicityOptions) -> None:
    assert 0.0 <= scaled(SCORER.value(verdicts, options), options.scale) <= options.scale


@given(st.lists(st.sampled_from([CLEAN, *TOXIC])), st.sampled_from(TOXIC), OPTIONS)
def test_a_toxic_element_never_lowers_the_score(
    verdicts: list[Verdict], more: Verdict, options: ToxicityOptions
) -> None:
    assert SCORER.value([*verdicts, more], options) >= SCORER.value(verdicts, options)
    assert SCORER.value([*verdicts, CLEAN], options) == SCORER.value(verdicts, options)


@pytest.mark.parametrize(
    "options",
    [
        {"severityWeights": {"mild": -0.1}},
        {"severityWeights": {"severe": 1.1}},
        {"severityWeights": {"mild": float("nan")}},
        {"severityWeights": {"moderate": float("inf")}},
        {"severityWeights": {"grave": 1}},
        {"maxToxicity": 0},
        {"maxToxicity": -1},
        {"maxToxicity": float("nan")},
        {"maxToxicity": float("inf")},
        {"unknown": 1},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ToxicityOptions.model_validate(options)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.0, "none"),
        (0.05, "mild"),
        (0.2, "mild"),
        (0.35, "moderate"),
        (0.7, "moderate"),
        (0.75, "severe"),
        (1.0, "severe"),
    ],
)
def test_bands(value: float, name: str) -> None:
    assert SCORER.interpret(value) == name


def test_labels_are_read_into_elements_and_severities() -> None:
    labels = SCORER.inquiries[0].assessments[Strategy.LABELS]
    assert labels.read({"label": "none"}) == {"element": "none"}
    read = [labels.read({"label": label}) for label in labels.fields["label"] if label != "none"]
    assert read == [{"element": element, "severity": severity} for element, severity in product(ELEMENTS, SEVERITIES)]


@pytest.mark.parametrize("strategy", [Strategy.THREE_STEP, Strategy.SINGLE_CALL])
def test_elements_are_read_as_they_are(strategy: Strategy) -> None:
    assessment = SCORER.inquiries[0].assessments[strategy]
    assert assessment.read({"element": "none"}) == {"element": "none"}
    assert assessment.read({"element": "threat", "severity": "mild"}) == {"element": "threat", "severity": "mild"}


def test_only_toxic_verdicts_stand_in_the_result_and_fit_the_published_schema() -> None:
    result = SCORER.assessed([CLEAN, *TOXIC, CLEAN, verdict(None, element="threat", severity="mild")])
    document = result.model_dump(mode="json")
    assert len(document["verdicts"]) == len(TOXIC) + 1
    assert document["verdicts"][0] == {
        "verdict": "yes",
        "element": "personal_attack",
        "severity": "mild",
        "reason": "Why.",
        "text": "Words",
        "span": {"start": 4, "end": 9},
    }
    Draft202012Validator(SCORER.step_schemas["analyzeStepResult"]).validate(document)


def test_what_a_reason_is_about() -> None:
    mild, severe = verdict(element="mockery", severity="mild"), verdict(element="hate_speech", severity="severe")
    assert SCORER.weight(severe) > SCORER.weight(mild) > SCORER.weight(CLEAN) == 0
    assert SCORER.describe(severe) == "hate speech (severe)"
