"""Scorers that callers register."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.contract.running import RunningApp
from tests.contract.shapes import pointers, problem, unique
from tests.unit.definitions import CALM

EDITED = {**CALM, "description": "How many sentences of an answer stay calm, edited."}


@pytest.fixture
def scorer_id(api: RunningApp) -> Iterator[str]:
    yield "calm"
    api.client.delete("/v1/scorers/calm")


def register(api: RunningApp, definition: dict[str, Any], **parameters: str) -> httpx.Response:
    return api.client.post("/v1/scorers", json=definition, params=parameters)


def test_a_registered_scorer_is_described_like_any_other(api: RunningApp, scorer_id: str) -> None:
    made = register(api, CALM)
    assert (made.status_code, made.headers["location"]) == (201, f"/v1/scorers/{scorer_id}")
    described = api.client.get(made.headers["location"]).json()
    assert described == made.json()
    assert (described["origin"], described["version"], described["usesJudge"]) == ("custom", "1", True)
    assert described["definition"] == CALM
    listed = {one["id"]: one for one in api.client.get("/v1/scorers").json()["items"]}
    assert listed[scorer_id] == {name: value for name, value in described.items() if name != "definition"}
    assert listed["bias"]["origin"] == "builtin"
    assert api.client.get("/v1/scorers/bias").json()["definition"] is None


def test_the_same_again_is_the_same(api: RunningApp, scorer_id: str) -> None:
    first = register(api, CALM)
    again = register(api, CALM)
    assert (again.status_code, again.json(), again.headers["location"]) == (
        200,
        first.json(),
        first.headers["location"],
    )


def test_a_version_never_changes(api: RunningApp, scorer_id: str) -> None:
    register(api, CALM)
    problem(register(api, EDITED), 409, "idempotency_conflict")
    assert register(api, {**EDITED, "version": "2"}).status_code == 201
    assert api.client.get(f"/v1/scorers/{scorer_id}").json()["version"] == "2"
    assert register(api, CALM).status_code == 200
    assert api.client.get(f"/v1/scorers/{scorer_id}").json()["version"] == "2"


def test_of_a_hundred_registrations_at_once_one_is_new(api: RunningApp, scorer_id: str) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: register(api, CALM), range(100)))
    assert sorted(answer.status_code for answer in answers) == [*[200] * 99, 201]
    assert len({answer.content for answer in answers}) == 1


def test_a_dry_run_registers_nothing(api: RunningApp) -> None:
    shown = register(api, CALM, dryRun="true")
    assert shown.status_code == 200
    assert (shown.json()["score"], shown.json()["status"]) == (0.5, "completed")
    problem(api.client.get("/v1/scorers/calm"), 404, "not_found")


def test_a_dry_run_needs_an_example(api: RunningApp) -> None:
    answer = register(api, {name: value for name, value in CALM.items() if name != "example"}, dryRun="true")
    assert pointers(problem(answer, 422, "invalid_request")) == ["#/example"]


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"id": "bias"}, "#/id"),
        ({"id": "Calm!"}, "#/id"),
        ({"colour": "red"}, "#/colour"),
        ({"direction": "sideways"}, "#/direction"),
        ({"score": "no_function(1)"}, "#/score"),
        ({"analyze": {**CALM["analyze"], "instructions": "x" * 20_001}}, "#/analyze/instructions"),
        ({"options": {"type": "object", "description": "x" * 40_000}}, "#"),
    ],
)
def test_every_fault_is_pointed_at(api: RunningApp, changed: dict[str, Any], pointer: str) -> None:
    for parameters in ({}, {"dryRun": "true"}):
        refused = problem(register(api, {**CALM, **changed}, **parameters), 422, "invalid_request")
        assert pointer in pointers(refused)


@pytest.mark.parametrize("value", ["yes", "1", "", "True"])
def test_a_flag_is_true_or_false(api: RunningApp, value: str) -> None:
    answer = register(api, CALM, dryRun=value)
    assert pointers(problem(answer, 422, "invalid_request")) == ["#/dryRun"]


def test_what_is_deleted_is_gone(api: RunningApp) -> None:
    register(api, CALM)
    assert api.client.delete("/v1/scorers/calm").status_code == 204
    problem(api.client.get("/v1/scorers/calm"), 404, "not_found")
    problem(api.client.delete("/v1/scorers/calm"), 404, "not_found")
    problem(api.score("calm", output="A text."), 404, "not_found")


def test_a_scorer_of_the_installation_stays(api: RunningApp) -> None:
    problem(api.client.delete("/v1/scorers/bias"), 403, "forbidden")
    assert api.client.get("/v1/scorers/bias").status_code == 200


def test_where_no_texts_are_kept_its_own_words_are_not(api: RunningApp, scorer_id: str) -> None:
    schema = CALM["analyze"]["schema"]
    noting = {
        **schema,
        "properties": {**schema["properties"], "note": {"type": "string"}},
        "required": ["calm", "note"],
    }
    definition = {name: value for name, value in CALM.items() if name != "example"}
    register(api, {**definition, "analyze": {**CALM["analyze"], "schema": noting}})
    answered = api.score(scorer_id, output=unique(), store="result").json()
    assert all(verdict["note"] and verdict["text"] for verdict in answered["analyzeStepResult"]["verdicts"])
    kept = api.client.get(f"/v1/runs/{answered['runId']}").json()
    told = kept["analyzeStepResult"]["verdicts"]
    assert [(verdict["note"], verdict["text"]) for verdict in told] == [("", "")] * len(told)
    assert [verdict["calm"] for verdict in told] == [
        verdict["calm"] for verdict in answered["analyzeStepResult"]["verdicts"]
    ]


def test_its_own_options_are_checked(api: RunningApp, scorer_id: str) -> None:
    options = {"type": "object", "properties": {"strictness": {"type": "integer", "minimum": 1, "default": 2}}}
    described = register(api, {**CALM, "options": options}).json()
    assert described["optionsSchema"]["properties"]["strictness"]["title"] == "Strictness"
    refused = api.score(scorer_id, output="A text.", options={"strictness": 0})
    assert pointers(problem(refused, 422, "invalid_request")) == ["#/options/strictness"]
    assert api.score(scorer_id, output="A text.", options={"strictness": 3}).status_code == 200
