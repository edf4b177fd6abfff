"""What scorers need that go by a reference answer or by criteria, as callers see it."""

from typing import Any

import pytest

from tests.contract.running import RunningApp
from tests.contract.shapes import pointers, problem, run, unique

ONE = {"id": "a", "description": "It is short."}
NOISY = {"groundTruth": "Tea is fine.", "metadata": {"team": "search", "noisyInput": "Is tae fine? Mind the dog."}}
BODIES: dict[str, dict[str, Any]] = {
    "context-recall": {"groundTruth": "Tea is fine.", "context": ["Tea was found to be fine."]},
    "answer-similarity": {"groundTruth": "Tea is fine."},
    "rubric": {"options": {"criteria": [ONE]}},
    "noise-sensitivity": NOISY,
}


@pytest.mark.parametrize(
    ("scorer", "body", "missing"),
    [
        ("context-recall", {}, ["#/context", "#/groundTruth"]),
        ("answer-similarity", {"groundTruth": " "}, ["#/groundTruth"]),
        ("rubric", {}, ["#/options/criteria"]),
        ("rubric", {"options": {"criteria": []}}, ["#/options/criteria"]),
        ("rubric", {"options": {"criteria": [ONE, ONE]}}, ["#/options/criteria"]),
        ("rubric", {"options": {"criteria": [ONE, {"id": "b"}]}}, ["#/options/criteria/1/description"]),
        ("noise-sensitivity", {}, ["#/groundTruth", "#/metadata/noisyInput"]),
        ("noise-sensitivity", {"groundTruth": "x", "metadata": {"noisyInput": 7}}, ["#/metadata/noisyInput"]),
        ("noise-sensitivity", {"groundTruth": "x", "metadata": {"noisyInput": " "}}, ["#/metadata/noisyInput"]),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    api: RunningApp, scorer: str, body: dict[str, Any], missing: list[str]
) -> None:
    assert pointers(problem(api.score(scorer, output="x", **body), 422, "invalid_request")) == missing
    many = api.client.post("/v1/runs", json={"output": "x", "scorers": [scorer], **body})
    assert pointers(problem(many, 422, "invalid_request")) == missing


@pytest.mark.parametrize("strategy", ["three_step", "single_call", "labels"])
@pytest.mark.parametrize("scorer", BODIES)
def test_runs_of_every_strategy_complete(api: RunningApp, scorer: str, strategy: str) -> None:
    body = BODIES[scorer]
    options = {**body.get("options", {}), "strategy": strategy}
    told = run(api.score(scorer, output=unique("Tea is fine."), **body | {"options": options}), 200)
    assert told["status"] == "completed"
    assert 0 <= told["score"] <= 1


@pytest.mark.parametrize("scorer", BODIES)
def test_store_result_keeps_no_words(api: RunningApp, scorer: str) -> None:
    body = {"output": unique("Tea is bad. Dogs bark."), **BODIES[scorer], "store": "result"}
    answered = run(api.score(scorer, **body), 200)
    kept = run(api.client.get(f"/v1/runs/{answered['runId']}"), 200)
    assert kept["score"] == answered["score"]
    told = str(kept)
    assert not [word for word in ("Tea", "tae", "fine", "bark", "short") if word in told]
    if scorer == "noise-sensitivity":
        assert kept["metadata"] == {"team": "search"}
        listed = api.client.get("/v1/runs", params={"metadata.noisyInput": NOISY["metadata"]["noisyInput"]}).json()
        assert answered["runId"] not in [one["runId"] for one in listed["items"]]


def test_metadata_comes_back_where_texts_are_kept(api: RunningApp) -> None:
    told = run(api.score("noise-sensitivity", output=unique("Tea is fine."), **NOISY), 200)
    assert told["metadata"] == NOISY["metadata"]
