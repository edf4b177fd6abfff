from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from app.custom.compiled import compiled
from app.domain.errors import InvalidRequest, NotConfigured
from app.domain.request import MultiScoreRequest, ScoreRequest, StorePolicy, Strategy
from app.domain.run import RunStatus
from app.judge.scorer import Inquiry
from app.ports import NewRun
from app.runs.accept import accept, accept_many, fingerprint, new_run
from app.runs.catalog import Catalog, Offer, Origin
from app.scorers import load_scorers
from tests.unit.custom.definitions import shipped
from tests.unit.fakes import DictDefinitions, FakeClock

pytestmark = pytest.mark.anyio

SCORERS = load_scorers()
ONE_STRATEGY = replace(
    SCORERS["toxicity"],
    id="slow",
    inquiries=(Inquiry(assessments={Strategy.THREE_STEP: SCORERS["toxicity"].inquiries[0].assessments["three_step"]}),),
)
LABELS_ALONE = replace(SCORERS["toxicity"], id="labelled", counts_shares=False)
OPTIONS = {"checks": {"includes": ["text"]}}
OWN = compiled(shipped("brand-safety"))
OFFERS = {scorer.id: Offer(scorer, Origin.BUILTIN) for scorer in (*SCORERS.values(), ONE_STRATEGY, LABELS_ALONE, OWN)}
DEPS: Any = SimpleNamespace(
    scorers=Catalog(OFFERS, DictDefinitions()),
    models=SimpleNamespace(default="fake/judge", ids=("fake/judge", "fake/b", "fake/c")),
    clock=FakeClock(),
    policy=SimpleNamespace(run_timeout_ms=60_000, run_ttl_s=60),
)


async def faults(scorer_id: str, **body: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequest) as refused:
        await accept(DEPS, "default", ScoreRequest.model_validate({"output": "A text.", **body}), scorer_id)
    return [(fault.pointer, fault.code) for fault in refused.value.faults]


async def test_a_scoring_that_a_scorer_does_not_have_is_a_fault() -> None:
    options = {"scoring": "expected"}
    assert await faults("labelled", options=options) == [("#/options/scoring", "unsupported_scoring")]
    for scorer_id in ("toxicity", "checks"):  # the formula counts probabilities; there are none to count
        body = ScoreRequest.model_validate({"output": "A text.", "options": {**options, **OPTIONS.get(scorer_id, {})}})
        assert (await accept(DEPS, "default", body, scorer_id)).scorer.id == scorer_id


async def test_examples_that_a_scorer_does_not_have_are_a_fault() -> None:
    texts = {"input": "Why?", "context": ["So."]}
    wanted = {"examples": "default"}
    assert await faults("context-relevance", **texts, options=wanted) == [
        ("#/options/examples", "unsupported_examples")
    ]
    body = ScoreRequest.model_validate({"output": "A text.", **texts, "options": {"examples": "none"}})
    assert (await accept(DEPS, "default", body, "context-relevance")).options.examples == "none"


async def new(scorer_id: str, **body: Any) -> NewRun:
    request = ScoreRequest.model_validate({"output": "A text.", **body})
    return new_run(
        DEPS, "tenant", "run-00000001", request, await accept(DEPS, "default", request, scorer_id), RunStatus.QUEUED, ""
    )


@pytest.mark.parametrize("context", [None, [], [""], [" ", "\n\t"]])
async def test_a_context_that_says_nothing_is_missing(context: Any) -> None:
    assert await faults("faithfulness", context=context) == [("#/context", "missing")]


@pytest.mark.parametrize(
    "question",
    [None, "", " ", [{"role": "user"}], [{"role": "user", "content": [{"type": "image"}]}, {"role": "user"}]],
)
async def test_an_input_that_says_nothing_is_missing(question: Any) -> None:
    assert await faults("answer-relevancy", input=question) == [("#/input", "missing")]


async def test_all_missing_inputs_are_named() -> None:
    assert await faults("context-precision") == [("#/input", "missing"), ("#/context", "missing")]


@pytest.mark.parametrize("question", ["Why?", [{"role": "user", "content": "Why?"}]])
async def test_what_says_something_is_given(question: Any) -> None:
    body = ScoreRequest.model_validate({"output": "A text.", "input": question, "context": ["", "A passage."]})
    assert (await accept(DEPS, "default", body, "context-precision")).scorer.id == "context-precision"


async def test_a_strategy_that_a_scorer_does_not_have_is_a_fault() -> None:
    options = {"strategy": "labels"}
    assert await faults("slow", options=options) == [("#/options/strategy", "unsupported_strategy")]
    assert (
        await accept(DEPS, "default", ScoreRequest.model_validate({"output": "A text."}), "slow")
    ).scorer is ONE_STRATEGY

    scorers = ["toxicity", "slow", {"id": "slow", "options": options}]
    body = MultiScoreRequest.model_validate({"output": "A text.", "options": options, "scorers": scorers})
    with pytest.raises(InvalidRequest) as refused:
        await accept_many(DEPS, "default", body)
    assert [fault.pointer for fault in refused.value.faults] == ["#/options/strategy", "#/scorers/2/options/strategy"]
    assert "three_step" in refused.value.faults[0].detail


@pytest.mark.parametrize("noisy", [None, 7, True, "", " \n"])
async def test_a_noisy_input_that_says_nothing_is_missing(noisy: Any) -> None:
    body = {"groundTruth": "Tea.", "metadata": {"noisyInput": noisy}}
    assert await faults("noise-sensitivity", **body) == [("#/metadata/noisyInput", "missing")]
    assert await faults("noise-sensitivity", groundTruth="Tea.") == [("#/metadata/noisyInput", "missing")]


@pytest.mark.parametrize("policy", list(StorePolicy))
async def test_a_noisy_input_goes_with_the_request_and_is_kept_as_other_texts_are(policy: StorePolicy) -> None:
    metadata = {"team": "search", "noisyInput": "Tae?"}
    body = ScoreRequest(output="A text.", ground_truth="Tea.", metadata=metadata, store=policy)
    accepted = await accept(DEPS, "tenant", body, "noise-sensitivity")
    new = new_run(DEPS, "tenant", "run-00000001", body, accepted, RunStatus.RUNNING, "caller")
    assert new.request.noisy_input == "Tae?"
    assert new.run.metadata == (metadata if policy is StorePolicy.FULL else {"team": "search"})


async def test_a_panel_is_of_configured_models_each_once_and_instead_of_a_model() -> None:
    assert await faults("bias", models=["fake/judge", "x/gone", "fake/b", "x/lost"]) == [
        ("#/models/1", "unknown_model"),
        ("#/models/3", "unknown_model"),
    ]
    assert await faults("bias", models=["fake/b", "fake/judge", "fake/b"]) == [("#/models/2", "repeated")]
    assert await faults("bias", models=["fake/b", "fake/c"], model="fake/b") == [("#/model", "model_and_models")]
    assert await faults("bias", model="x/gone") == [("#/model", "unknown_model")]


async def test_a_panel_stands_on_the_run_and_on_what_it_is_to_do() -> None:
    made = await new("bias", models=["fake/b", "fake/c"])
    assert (made.request.model, made.request.models) == ("fake/b", ["fake/b", "fake/c"])
    assert (made.run.model, made.run.models) == ("fake/b", ["fake/b", "fake/c"])


async def test_without_a_panel_there_is_one_model() -> None:
    for body, model in (({}, "fake/judge"), ({"model": "fake/c"}, "fake/c")):
        made = await new("bias", **body)
        assert (made.request.model, made.request.models, made.run.models) == (model, None, None)


async def test_scorers_without_a_judge_take_no_notice_of_models_and_samples() -> None:
    made = await new("completeness", input="Tea?", models=["x/a", "x/b"], model="x/c", options={"samples": 5})
    assert (made.request.model, made.request.models, made.run.models) == (None, None, None)


async def test_a_panel_needs_no_default_model() -> None:
    deps = SimpleNamespace(scorers=DEPS.scorers, models=SimpleNamespace(default=None, ids=("a/b", "a/c")))
    body = ScoreRequest.model_validate({"output": "A text.", "models": ["a/b", "a/c"]})
    assert (await accept(deps, "default", body, "bias")).scorer.id == "bias"  # type: ignore[arg-type]
    with pytest.raises(NotConfigured):
        await accept(deps, "default", ScoreRequest(output="A text."), "bias")  # type: ignore[arg-type]


async def test_another_panel_is_another_request() -> None:
    bodies = [{}, {"models": ["a/b", "a/c"]}, {"models": ["a/c", "a/b"]}, {"options": {"samples": 3}}]
    told = {fingerprint(ScoreRequest.model_validate({"output": "A text.", **body}), "bias") for body in bodies}
    assert len(told) == len(bodies)


async def test_a_scorer_that_takes_one_judgement_refuses_samples_and_panels() -> None:
    body = {"models": ["fake/b", "fake/c"], "options": {"samples": 3}}
    assert await faults(OWN.id, **body) == [
        ("#/options/samples", "unsupported_samples"),
        ("#/models", "unsupported_models"),
    ]
    one = ScoreRequest.model_validate({"output": "A text.", "options": {"samples": 1}})
    assert (await accept(DEPS, "default", one, OWN.id)).scorer is OWN
