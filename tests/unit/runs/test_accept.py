from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from app.domain.errors import InvalidRequest
from app.domain.request import MultiScoreRequest, ScoreRequest, StorePolicy, Strategy
from app.domain.run import RunStatus
from app.judge.scorer import Inquiry
from app.runs.accept import accept, accept_many, new_run
from app.scorers import load_scorers
from tests.unit.fakes import FakeClock

SCORERS = load_scorers()
ONE_STRATEGY = replace(
    SCORERS["toxicity"],
    id="slow",
    inquiries=(Inquiry(assessments={Strategy.THREE_STEP: SCORERS["toxicity"].inquiries[0].assessments["three_step"]}),),
)
LABELS_ALONE = replace(SCORERS["toxicity"], id="labelled", counts_shares=False)
OPTIONS = {"checks": {"includes": ["text"]}}
DEPS: Any = SimpleNamespace(
    scorers={**SCORERS, "slow": ONE_STRATEGY, "labelled": LABELS_ALONE},
    models=SimpleNamespace(default="fake/judge", ids=("fake/judge",)),
)


def faults(scorer_id: str, **body: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequest) as refused:
        accept(DEPS, ScoreRequest.model_validate({"output": "A text.", **body}), scorer_id)
    return [(fault.pointer, fault.code) for fault in refused.value.faults]


def test_a_scoring_that_a_scorer_does_not_have_is_a_fault() -> None:
    options = {"scoring": "expected"}
    assert faults("labelled", options=options) == [("#/options/scoring", "unsupported_scoring")]
    for scorer_id in ("toxicity", "checks"):  # the formula counts probabilities; there are none to count
        body = ScoreRequest.model_validate({"output": "A text.", "options": {**options, **OPTIONS.get(scorer_id, {})}})
        assert accept(DEPS, body, scorer_id).scorer.id == scorer_id


def test_examples_that_a_scorer_does_not_have_are_a_fault() -> None:
    texts = {"input": "Why?", "context": ["So."]}
    wanted = {"examples": "default"}
    assert faults("context-relevance", **texts, options=wanted) == [("#/options/examples", "unsupported_examples")]
    body = ScoreRequest.model_validate({"output": "A text.", **texts, "options": {"examples": "none"}})
    assert accept(DEPS, body, "context-relevance").options.examples == "none"


@pytest.mark.parametrize("context", [None, [], [""], [" ", "\n\t"]])
def test_a_context_that_says_nothing_is_missing(context: Any) -> None:
    assert faults("faithfulness", context=context) == [("#/context", "missing")]


@pytest.mark.parametrize(
    "question",
    [None, "", " ", [{"role": "user"}], [{"role": "user", "content": [{"type": "image"}]}, {"role": "user"}]],
)
def test_an_input_that_says_nothing_is_missing(question: Any) -> None:
    assert faults("answer-relevancy", input=question) == [("#/input", "missing")]


def test_all_missing_inputs_are_named() -> None:
    assert faults("context-precision") == [("#/input", "missing"), ("#/context", "missing")]


@pytest.mark.parametrize("question", ["Why?", [{"role": "user", "content": "Why?"}]])
def test_what_says_something_is_given(question: Any) -> None:
    body = ScoreRequest.model_validate({"output": "A text.", "input": question, "context": ["", "A passage."]})
    assert accept(DEPS, body, "context-precision").scorer.id == "context-precision"


def test_a_strategy_that_a_scorer_does_not_have_is_a_fault() -> None:
    options = {"strategy": "labels"}
    assert faults("slow", options=options) == [("#/options/strategy", "unsupported_strategy")]
    assert accept(DEPS, ScoreRequest.model_validate({"output": "A text."}), "slow").scorer is ONE_STRATEGY

    scorers = ["toxicity", "slow", {"id": "slow", "options": options}]
    body = MultiScoreRequest.model_validate({"output": "A text.", "options": options, "scorers": scorers})
    with pytest.raises(InvalidRequest) as refused:
        accept_many(DEPS, body)
    assert [fault.pointer for fault in refused.value.faults] == ["#/options/strategy", "#/scorers/2/options/strategy"]
    assert "three_step" in refused.value.faults[0].detail


@pytest.mark.parametrize("noisy", [None, 7, True, "", " \n"])
def test_a_noisy_input_that_says_nothing_is_missing(noisy: Any) -> None:
    body = {"groundTruth": "Tea.", "metadata": {"noisyInput": noisy}}
    assert faults("noise-sensitivity", **body) == [("#/metadata/noisyInput", "missing")]
    assert faults("noise-sensitivity", groundTruth="Tea.") == [("#/metadata/noisyInput", "missing")]


@pytest.mark.parametrize("policy", list(StorePolicy))
def test_a_noisy_input_goes_with_the_request_and_is_kept_as_other_texts_are(policy: StorePolicy) -> None:
    metadata = {"team": "search", "noisyInput": "Tae?"}
    body = ScoreRequest(output="A text.", ground_truth="Tea.", metadata=metadata, store=policy)
    deps: Any = SimpleNamespace(
        **vars(DEPS), clock=FakeClock(), policy=SimpleNamespace(run_timeout_ms=1_000, run_ttl_s=10)
    )
    accepted = accept(deps, body, "noise-sensitivity")
    new = new_run(deps, "tenant", "run-00000001", body, accepted, RunStatus.RUNNING, "caller")
    assert new.request.noisy_input == "Tae?"
    assert new.run.metadata == (metadata if policy is StorePolicy.FULL else {"team": "search"})
