"""Runs that exist: get, wait, list, cancel, retry, delete."""

from typing import Any

import pytest

from tests.contract.running import RunningApp
from tests.contract.shapes import pointers, problem, run, unique
from tests.stub_judge.process import StubProcess


def queued(api: RunningApp, **body: Any) -> dict[str, Any]:
    return run(api.score(output=unique(), mode="queued", **body), 202)


def completed(api: RunningApp, **body: Any) -> dict[str, Any]:
    return run(api.score(output=unique(), **body), 200)


def test_a_known_representation_is_not_sent_again(api: RunningApp) -> None:
    path = f"/v1/runs/{completed(api)['runId']}"
    etag = api.client.get(path).headers["etag"]
    for sent in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = api.client.get(path, headers={"If-None-Match": sent})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == etag
        assert answer.headers["cache-control"] == "private, no-store"
    without = api.client.get(path, params={"include": ""}, headers={"If-None-Match": etag})
    assert without.status_code == 200


def test_a_change_changes_the_etag(api: RunningApp) -> None:
    path = f"/v1/runs/{queued(api)['runId']}"
    before = api.client.get(path)
    assert before.headers["retry-after"]
    api.client.post(f"{path}/cancel")
    after = api.client.get(path, headers={"If-None-Match": before.headers["etag"]})
    assert run(after, 200)["status"] == "cancelled"
    assert "retry-after" not in after.headers


def test_head_is_get_without_a_body(api: RunningApp) -> None:
    path = f"/v1/runs/{completed(api)['runId']}"
    head = api.client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == api.client.get(path).headers["etag"]


def test_a_wait_ends_with_its_time_or_with_the_run(api: RunningApp) -> None:
    path = f"/v1/runs/{queued(api)['runId']}"
    assert run(api.client.get(path, params={"wait": "1"}), 200)["status"] == "queued"
    # The client's own patience is shorter than this wait.
    assert run(api.client.get(f"/v1/runs/{completed(api)['runId']}", params={"wait": "60"}), 200)["score"] is not None


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("wait=61", "#/wait"),
        ("wait=-1", "#/wait"),
        ("wait=x", "#/wait"),
        ("wait=1&wait=1", "#/wait"),
        ("wiat=1", "#/wiat"),
        ("include=a.b", "#/include"),
    ],
)
def test_faults_of_the_query_string(api: RunningApp, query: str, where: str) -> None:
    told = problem(api.client.get(f"/v1/runs/0123456789?{query}"), 422, "invalid_request")
    assert pointers(told) == [where]


@pytest.mark.parametrize(
    "run_id", ["unknown-run-id", "short", "x" * 65, "no.such.run", "%00%00%00%00%00%00%00%00", "%C3%A9" * 8]
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("POST", "/retry"), ("GET", "/events")]
)
def test_what_is_no_run_is_not_found(api: RunningApp, run_id: str, method: str, path: str) -> None:
    problem(api.client.request(method, f"/v1/runs/{run_id}{path}"), 404, "not_found")


def test_lists_are_newest_first_filtered_and_paged(api: RunningApp) -> None:
    team = f"team-{unique()[-33:-1]}"
    made = [completed(api, metadata={"team": team, "n": n}) for n in range(3)]
    made.append(queued(api, metadata={"team": team, "n": 3}))
    newest_first = [each["runId"] for each in reversed(made)]

    def listed(**filters: Any) -> list[str]:
        answer = api.client.get("/v1/runs", params={"metadata.team": team, **filters})
        assert answer.status_code == 200, answer.text
        return [each["runId"] for each in answer.json()["items"]]

    assert listed() == newest_first
    assert listed(status="queued") == newest_first[:1]
    assert listed(scorerId="toxicity") == []
    assert listed(createdBefore="2020-01-01T00:00:00Z") == []
    assert listed(createdAfter="2020-01-01T00:00:00Z") == newest_first
    assert listed(**{"metadata.n": "2"}) == [made[2]["runId"]]

    paged: list[str] = []
    cursor: str | None = None
    for _ in range(10):
        params = {"metadata.team": team, "limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = api.client.get("/v1/runs", params=params).json()
        paged += [each["runId"] for each in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert paged == newest_first


def test_listed_runs_are_the_stored_ones(api: RunningApp) -> None:
    team = f"team-{unique()[-33:-1]}"
    made = completed(api, metadata={"team": team})
    assert api.client.get("/v1/runs", params={"metadata.team": team}).json()["items"] == [made]
    without = api.client.get("/v1/runs", params={"metadata.team": team, "include": ""}).json()["items"][0]
    assert {name for name in made if name not in without} == {
        "preprocessPrompt",
        "analyzePrompt",
        "generateReasonPrompt",
    }


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("limit=0", "#/limit"),
        ("limit=101", "#/limit"),
        ("status=done", "#/status"),
        ("createdAfter=yesterday", "#/createdAfter"),
        ("scorer=bias", "#/scorer"),
        ("cursor=not-one-of-ours", "#/cursor"),
    ],
)
def test_a_misspelt_filter_is_not_taken_for_none(api: RunningApp, query: str, where: str) -> None:
    assert pointers(problem(api.client.get(f"/v1/runs?{query}"), 422, "invalid_request")) == [where]


def test_cancel_stops_a_queued_run_and_leaves_an_ended_one(api: RunningApp) -> None:
    waiting, ended = queued(api), completed(api)
    assert run(api.client.post(f"/v1/runs/{waiting['runId']}/cancel"), 200)["status"] == "cancelled"
    assert run(api.client.post(f"/v1/runs/{ended['runId']}/cancel"), 200) == ended


def test_retry_queues_again_only_what_failed(api: RunningApp, judge: StubProcess) -> None:
    judge.script({"refuse": True, "times": None})
    failed = problem(api.score(output=unique()), 502, "judge_refused")["runId"]
    answer = api.client.post(f"/v1/runs/{failed}/retry")
    again = run(answer, 202)
    assert (again["runId"], again["status"], again["error"]) == (failed, "queued", None)
    assert answer.headers["location"] == f"/v1/runs/{failed}"
    assert answer.headers["retry-after"]
    assert run(api.client.post(f"/v1/runs/{failed}/retry"), 202) == again
    judge.reset()
    fresh = api.score(output=unique(), mode="queued").json()["runId"]
    problem(api.client.post(f"/v1/runs/{fresh}/retry"), 409, "invalid_request")
    problem(api.client.post(f"/v1/runs/{completed(api)['runId']}/retry"), 409, "invalid_request")


def test_delete_forgets(api: RunningApp) -> None:
    path = f"/v1/runs/{completed(api)['runId']}"
    answer = api.client.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    problem(api.client.delete(path), 404, "not_found")
    problem(api.client.get(path), 404, "not_found")
