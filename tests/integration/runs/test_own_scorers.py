"""Scorers that callers register, from the registration to the end of their runs, on real processes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.adapters.redis_client import connect
from app.adapters.redis_definitions import RedisDefinitionStore
from tests.integration.service import Service
from tests.integration.store.making import everything
from tests.unit.adapters.test_standing_scorers import installed
from tests.unit.definitions import CALM

# The stub says "yes" of what is inferior, and "no" of all else.
TEXT = "The north village is inferior. It rains there. Is it far?"
SCORE = 0.3333
DIFFERING = {"runId", "createdAt", "startedAt", "completedAt", "deadlineAt", "expiresAt", "timings", "history", "usage"}
SECOND = {**CALM, "version": "2", "description": "The second edition of calm, of which nobody should find a trace."}


@pytest.fixture
def calm(service: Service) -> Iterator[str]:
    assert register(service, CALM).status_code == 201
    yield "calm"
    service.client.delete("/v1/scorers/calm")


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    server = start_valkey(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def own_service(own_valkey: EmbeddedValkey, tmp_path: Path) -> Iterator[Service]:
    """A service whose processes the test may stop and start."""
    with Service(own_valkey.url, tmp_path) as service:
        yield service


def register(service: Service, definition: dict[str, Any]) -> httpx.Response:
    return service.client.post("/v1/scorers", json=definition)


def same(run: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in DIFFERING}


def test_it_runs_like_any_other(service: Service, calm: str) -> None:
    answer = service.score(calm, output=TEXT, threshold=0.5)
    assert answer.status_code == 200, answer.text
    run = answer.json()
    assert (run["status"], run["scorerId"], run["scorerVersion"]) == ("completed", "calm", "1")
    assert (run["score"], run["direction"], run["passed"]) == (SCORE, "higher_is_better", False)
    queued = service.run(service.score(calm, output=TEXT, threshold=0.5, mode="queued").json()["runId"])
    assert same(queued) == same(run)
    assert queued["usage"]["judgeCalls"] == 0


def test_it_runs_beside_others(service: Service, calm: str) -> None:
    body = {"output": TEXT, "scorers": ["bias", {"id": calm, "threshold": 0.9}], "runId": "two-scorers"}
    first, second = service.client.post("/v1/runs", json=body).json()["runs"]
    assert (first["scorerId"], second["scorerId"]) == ("bias", "calm")
    assert (second["runId"], second["score"], second["passed"]) == ("two-scorers-calm", SCORE, False)
    again = service.client.post("/v1/runs", json=body)
    assert again.headers["idempotent-replayed"] == "true"


def test_its_runs_are_listed_and_streamed(service: Service, calm: str) -> None:
    run = service.score(calm, output=TEXT, mode="queued").json()
    service.run(run["runId"])
    listed = service.client.get("/v1/runs", params={"scorerId": calm}).json()["items"]
    assert run["runId"] in [one["runId"] for one in listed]
    assert {one["scorerId"] for one in listed} == {calm}
    events = service.client.get(f"/v1/runs/{run['runId']}/events").text
    assert '"step":"analyze"' in events
    assert "event: run" in events


def test_an_idempotency_key_stands_for_the_run_of_the_first_version(service: Service, calm: str) -> None:
    headers = {"Idempotency-Key": "calm-once"}
    first = service.score(calm, headers=headers, output=TEXT).json()
    assert register(service, SECOND).status_code == 201
    again = service.score(calm, headers=headers, output=TEXT)
    assert (again.json()["runId"], again.json()["scorerVersion"]) == (first["runId"], "1")
    assert service.score(calm, output=TEXT).json()["scorerVersion"] == "2"


def test_another_version_asks_anew(service: Service, calm: str) -> None:
    text = f"{TEXT} So they say."
    service.score(calm, output=text)
    service.stub.reset()
    register(service, SECOND)
    assert service.score(calm, output=text).json()["usage"]["cacheHits"] == 0
    assert service.judge_calls() > 0


def test_the_name_is_no_label(service: Service, calm: str) -> None:
    service.score(calm, output=TEXT)
    exposed = service.client.get("/metrics").text
    assert 'assay_runs_total{mode="inline",scorer="custom",status="completed"}' in exposed
    assert "calm" not in exposed


def test_a_retry_needs_no_registration(service: Service) -> None:
    register(service, CALM)
    service.stub.script({"refuse": True, "times": None})
    failed = service.score("calm", output="The east village is inferior.")
    assert failed.status_code == 502
    run_id = failed.json()["runId"]
    service.stub.reset()
    assert service.client.delete("/v1/scorers/calm").status_code == 204
    assert service.client.post(f"/v1/runs/{run_id}/retry").status_code == 202
    assert (service.run(run_id)["status"], service.run(run_id)["scorerVersion"]) == ("completed", "1")


def test_what_waits_ends_as_it_was_accepted(own_service: Service) -> None:
    register(own_service, CALM)
    own_service.workers.pop().stop()
    first = own_service.score("calm", output=TEXT, mode="queued").json()
    register(own_service, SECOND)
    second = own_service.score("calm", output=TEXT, mode="queued").json()
    assert own_service.client.delete("/v1/scorers/calm").status_code == 204
    assert own_service.score("calm", output=TEXT).status_code == 404
    own_service.workers.append(own_service.start_worker())
    for run, version in ((first, "1"), (second, "2")):
        ended = own_service.run(run["runId"])
        assert (ended["status"], ended["score"], ended["scorerVersion"]) == ("completed", SCORE, version)


def test_a_registration_outlives_every_process(own_service: Service) -> None:
    register(own_service, CALM)
    for process in (own_service.workers.pop(), own_service.apis.pop()):
        process.stop()
    own_service.apis.append(own_service.start_api())
    own_service.workers.append(own_service.start_worker())
    own_service.wait_until_ready()
    assert own_service.client.get("/v1/scorers/calm").json()["definition"] == CALM
    run = own_service.score("calm", output=TEXT, mode="queued").json()
    assert own_service.run(run["runId"])["score"] == SCORE


@pytest.mark.anyio
async def test_what_is_deleted_leaves_nothing_but_in_its_runs(own_service: Service) -> None:
    trace = "of which nobody should find a trace"
    register(own_service, SECOND)
    run = own_service.score("calm", output=TEXT).json()
    own_service.client.delete("/v1/scorers/calm")
    async with connect(own_service.redis_url) as client:
        assert trace in await everything(client)
        own_service.client.delete(f"/v1/runs/{run['runId']}")
        left = await everything(client)
    assert trace not in left
    assert "calm" not in left


@pytest.mark.anyio
async def test_the_scorers_of_another_tenant_do_not_exist(service: Service, calm: str) -> None:
    async with connect(service.redis_url) as client:
        await RedisDefinitionStore(client).add("another", "their-own", "1", json.dumps({**CALM, "id": "their-own"}))
    assert service.client.get("/v1/scorers/their-own").status_code == 404
    assert service.client.delete("/v1/scorers/their-own").status_code == 404
    assert service.score("their-own", output=TEXT).status_code == 404
    assert "their-own" not in service.client.get("/v1/scorers").text


def test_files_and_packages_bring_scorers_to_all_processes(
    own_valkey: EmbeddedValkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, packages = tmp_path / "scorers", tmp_path / "packages"
    files.mkdir()
    packages.mkdir()
    (files / "calm.json").write_text(json.dumps(CALM))
    installed(packages, "loud", "shouting", "loud:SHOUTING")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    with Service(own_valkey.url, tmp_path, scorers_dir=str(files)) as service:
        origins = {one["id"]: one["origin"] for one in service.client.get("/v1/scorers").json()["items"]}
        assert (origins["calm"], origins["shouting"]) == ("file", "package")
        assert register(service, CALM).status_code == 422
        assert service.client.delete("/v1/scorers/calm").status_code == 403
        for scorer_id, version in (("calm", "1"), ("shouting", "7")):
            run = service.score(scorer_id, output=TEXT, input="Does it rain?", mode="queued").json()
            ended = service.run(run["runId"])
            assert (ended["status"], ended["scorerVersion"]) == ("completed", version)
