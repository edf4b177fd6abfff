"""Scorers that need no judge, as callers see them."""

from typing import Any

import pytest

from app.adapters.embedded_valkey import EmbeddedValkey
from app.scorers import load_scorers
from tests.contract.running import RunningApp, settings_for
from tests.contract.shapes import pointers, problem, run

COMPUTED = [scorer_id for scorer_id, scorer in load_scorers().items() if not scorer.uses_judge]


@pytest.mark.parametrize(
    ("scorer", "body", "missing"),
    [
        ("completeness", {}, ["#/input"]),
        ("completeness", {"input": "  "}, ["#/input"]),
        ("keyword-coverage", {}, ["#/input"]),
        ("content-similarity", {"input": "x"}, ["#/groundTruth"]),
        ("content-similarity", {"groundTruth": "x", "options": {"against": "input"}}, ["#/input"]),
        ("textual-difference", {"groundTruth": "\n"}, ["#/groundTruth"]),
        ("checks", {}, ["#/options"]),
        ("checks", {"options": {"matches": ["ok", "(?=secret)"]}}, ["#/options/matches/1"]),
        ("checks", {"options": {"jsonSchema": {"type": "secret"}}}, ["#/options/jsonSchema"]),
        ("tone", {"options": {"textLanguage": "no language"}}, ["#/options/textLanguage"]),
        ("tone", {"options": {"keywords": ["x"]}}, ["#/options/keywords"]),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    api: RunningApp, scorer: str, body: dict[str, Any], missing: list[str]
) -> None:
    answer = api.client.post(f"/v1/scorers/{scorer}/runs", json={"output": "x", **body})
    told = problem(answer, 422, "invalid_request")
    assert pointers(told) == missing
    assert "secret" not in answer.text


def test_a_run_looks_like_any_other_with_the_judges_fields_empty(api: RunningApp) -> None:
    answer = api.client.post(
        "/v1/scorers/checks/runs",
        json={"output": "Green tea", "options": {"includes": ["tea"], "scale": 5}, "threshold": 4, "model": "no/such"},
    )
    told = run(answer, 200)
    assert (told["status"], told["score"], told["passed"], told["scorerVersion"]) == ("completed", 5.0, True, "1")
    assert (told["direction"], told["interpretation"]) == ("higher_is_better", "all checks passed")
    assert told["reason"] == "Checks passed: 1 of 1."
    assert (told["model"], told["preprocessPrompt"], told["analyzePrompt"], told["generateReasonPrompt"]) == (None,) * 4
    assert told["usage"]["judgeCalls"] == 0
    assert told["analyzeStepResult"]["results"][0]["span"] == {"start": 6, "end": 9}


def test_store_result_keeps_no_words(api: RunningApp) -> None:
    body = {"output": "Green tea", "input": "Is there tea or milk?", "store": "result"}
    run_id = run(api.client.post("/v1/scorers/completeness/runs", json=body), 200)["runId"]
    kept = run(api.client.get(f"/v1/runs/{run_id}"), 200)
    assert kept["score"] == 0.5
    assert kept["analyzeStepResult"] == {"terms": 2, "found": 1, "matched": [], "missing": []}


def test_scorers_say_whether_they_ask_a_judge(api: RunningApp) -> None:
    described = {item["id"]: item for item in api.client.get("/v1/scorers").json()["items"]}
    assert {scorer_id for scorer_id, item in described.items() if not item["usesJudge"]} == set(COMPUTED)
    assert described["content-similarity"]["needs"] == ["output", "groundTruth"]


def test_none_of_them_needs_a_judge_configured(valkey_server: EmbeddedValkey) -> None:
    body = {"output": "I love tea.", "input": "Tea?", "groundTruth": "Tea is fine.", "scorers": COMPUTED}
    checks = {"id": "checks", "options": {"includes": ["tea"]}}
    with RunningApp(settings_for(valkey_server.url, None, judge_model=None)) as api:
        answer = api.client.post("/v1/runs", json=body | {"scorers": [checks, *(set(COMPUTED) - {"checks"})]})
        assert answer.status_code == 200, answer.text
        assert [told["status"] for told in answer.json()["runs"]] == ["completed"] * len(COMPUTED)
        mixed = api.client.post("/v1/runs", json=body | {"scorers": ["tone", "bias"]})
        problem(mixed, 503, "not_configured")
