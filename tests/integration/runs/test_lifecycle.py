"""Runs over HTTP, from acceptance to deletion."""

import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis

from tests.integration.runs.test_scores import unique
from tests.integration.service import LOOK_AGAIN_S, Service


def new_id() -> str:
    return uuid.uuid4().hex


def events_of(service: Service, run_id: str, last_event_id: str | None = None) -> list[tuple[str, str, Any]]:
    """Read a run's stream to its end: (id, event, data) of every message."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    with service.client.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        text = "".join(stream.iter_text())
    messages = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "data" in fields:
            messages.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return messages


def test_a_queued_run_ends_and_tells_every_step(service: Service) -> None:
    service.stub.script({"delay_ms": 100, "times": None})
    accepted = service.score(output=unique(), headers={"Prefer": "respond-async"})
    assert accepted.status_code == 202
    assert accepted.headers["Preference-Applied"] == "respond-async"
    run_id = accepted.json()["runId"]
    assert accepted.headers["Location"] == f"/v1/runs/{run_id}"
    messages = events_of(service, run_id)
    assert [(event, data.get("step")) for _, event, data in messages] == [
        ("step", "preprocess"),
        ("step", "analyze"),
        ("step", "generateReason"),
        ("run", None),
    ]
    assert messages[-1][2] == service.run(run_id)
    resumed = events_of(service, run_id, last_event_id=messages[1][0])
    assert resumed == messages[2:]
    run = service.run(run_id)
    assert run["timings"]["queuedMs"] >= 0
    assert run["startedAt"] >= run["createdAt"]


def test_an_inline_run_that_outlives_its_wait_goes_on_in_the_queue(service: Service) -> None:
    service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "delay_ms": 1500})
    answer = service.score(output=unique(), headers={"Prefer": "wait=1"})
    assert answer.status_code == 202
    assert answer.json()["status"] in {"queued", "running"}
    run = service.run(answer.json()["runId"])
    assert run["status"] == "completed"
    names = [call["body"]["response_format"]["json_schema"]["name"] for call in service.stub.calls()["requests"]]
    assert names.count("bias_preprocess") == 1


@pytest.mark.parametrize("cache", ["off", "refresh"])
def test_finished_steps_are_not_paid_for_twice_even_without_the_cache(service: Service, cache: str) -> None:
    service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "delay_ms": 1500})
    answer = service.score(output=unique(), cache=cache, headers={"Prefer": "wait=1"})
    assert service.run(answer.json()["runId"])["status"] == "completed"
    names = [call["body"]["response_format"]["json_schema"]["name"] for call in service.stub.calls()["requests"]]
    assert names.count("bias_preprocess") == 1


def test_cache_off_and_refresh_ask_anew(service: Service) -> None:
    output = unique()
    for cache, calls in (("use", 3), ("use", 3), ("off", 6), ("refresh", 9), ("use", 9)):
        assert service.score(output=output, cache=cache).status_code == 200
        assert service.judge_calls() == calls, cache


@pytest.mark.parametrize("repeat", ["runId", "Idempotency-Key"])
@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_the_same_request_again_is_the_same_run(service: Service, mode: str, repeat: str) -> None:
    body: dict[str, Any] = {"output": unique(), "mode": mode}
    headers = {"Idempotency-Key": new_id()} if repeat == "Idempotency-Key" else {}
    if repeat == "runId":
        body["runId"] = new_id()
    first = service.score(**body, headers=headers)
    run = service.run(first.json()["runId"])
    again = service.score(**body, headers=headers)
    assert again.json()["runId"] == run["runId"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == run
    assert service.judge_calls() == 3
    other = service.score(**body | {"output": unique()}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


def test_a_queued_run_can_be_cancelled(service: Service) -> None:
    service.stub.script({"hang": True, "times": None})
    run_id = service.score(output=unique(), mode="queued").json()["runId"]
    cancelled = service.client.post(f"/v1/runs/{run_id}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert service.run(run_id)["status"] == "cancelled"
    assert service.client.post(f"/v1/runs/{run_id}/cancel").json() == service.run(run_id)


def test_a_failed_run_can_be_run_again(service: Service) -> None:
    service.stub.script({"refuse": True, "times": 1})
    run_id = service.score(output=unique()).json()["runId"]
    failed = service.run(run_id)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "judge_refused")
    again = service.client.post(f"/v1/runs/{run_id}/retry")
    assert again.status_code == 202
    run = service.run(run_id)
    assert (run["status"], run["score"], run["attempts"]) == ("completed", 0.3333, 2)
    assert service.client.post(f"/v1/runs/{run_id}/retry").status_code == 409


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_delete_leaves_no_trace(service: Service, mode: str) -> None:
    canary = f"canary{new_id()}"
    answer = service.score(
        output=f"The {canary} village is always inferior.",
        input=f"What of {canary}?",
        mode=mode,
        metadata={"note": canary},
        headers={"Idempotency-Key": canary},
    )
    run_id = answer.json()["runId"]
    assert service.run(run_id)["status"] == "completed"
    assert service.client.delete(f"/v1/runs/{run_id}").status_code == 204
    assert service.client.delete(f"/v1/runs/{run_id}").status_code == 404
    for text in (canary, run_id):
        assert not traces(service.redis_url, text.encode())


def test_delete_of_a_run_under_way_leaves_no_trace(service: Service) -> None:
    canary = f"canary{new_id()}"
    before = set(traces(service.redis_url, b"assay:answer:"))
    service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "hang": True, "times": None})
    answer = service.score(output=f"The {canary} village is always inferior.", headers={"Prefer": "wait=1"})
    assert answer.status_code == 202
    run_id = answer.json()["runId"]
    assert service.client.delete(f"/v1/runs/{run_id}").status_code == 204
    for text in (canary, run_id):
        assert not traces(service.redis_url, text.encode())
    assert set(traces(service.redis_url, b"assay:answer:")) == before


@pytest.mark.parametrize("kept", [{"cache": "off"}, {"store": "result"}])
def test_what_only_a_run_may_use_ends_with_its_cancellation(service: Service, kept: dict[str, str]) -> None:
    before = set(traces(service.redis_url, b"assay:answer:"))
    service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "hang": True, "times": None})
    run_id = service.score(output=unique(), mode="queued", **kept).json()["runId"]
    while service.judge_calls() < 2:
        time.sleep(LOOK_AGAIN_S)
    assert set(traces(service.redis_url, b"assay:answer:")) > before
    assert service.client.post(f"/v1/runs/{run_id}/cancel").json()["status"] == "cancelled"
    give_up = time.monotonic() + 10
    while set(traces(service.redis_url, b"assay:answer:")) != before:
        assert time.monotonic() < give_up
        time.sleep(LOOK_AGAIN_S)


def test_a_shorter_deadline_of_another_does_not_cost_the_run(service: Service) -> None:
    service.stub.script({"status": 429, "headers": {"Retry-After": "3"}, "body": {"error": {"message": "slow down"}}})
    output = unique()
    with ThreadPoolExecutor(2) as threads:
        hasty = threads.submit(service.score, output=output, timeoutMs=1500)
        while service.judge_calls() < 1:
            time.sleep(LOOK_AGAIN_S)
        patient = threads.submit(service.score, output=output, timeoutMs=60_000)
        assert hasty.result().status_code == 502
        assert (patient.result().status_code, patient.result().json()["score"]) == (200, 0.3333)


def traces(redis_url: str, text: bytes) -> list[bytes]:
    """Return the Redis keys whose name or value holds text; a key may expire between its scan and its reading."""
    found = []
    with redis.Redis.from_url(redis_url) as client:
        for key in client.scan_iter(count=1000):
            kind = client.type(key)
            readers: dict[bytes, Any] = {
                b"none": lambda _name: None,
                b"string": client.get,
                b"hash": client.hgetall,
                b"list": lambda name: client.lrange(name, 0, -1),
                b"set": client.smembers,
                b"zset": lambda name: client.zrange(name, 0, -1),
                b"stream": client.xrange,
            }
            if text in key or text in repr(readers[kind](key)).encode():
                found.append(key)
    return found


def test_store_result_keeps_no_texts(service: Service) -> None:
    canary = f"canary{new_id()}"
    answer = service.score(output=f"The {canary} village is always inferior.", store="result", cache="off")
    run = service.run(answer.json()["runId"])
    assert (run["status"], run["analyzePrompt"]) == ("completed", None)
    assert run["analyzeStepResult"]["results"][0]["span"] == {"start": 0, "end": len(canary) + 32}
    assert not traces(service.redis_url, canary.encode())


def test_what_a_judge_quotes_is_answered_and_not_kept_by_store_result(service: Service) -> None:
    canary = f"canary{new_id()}"
    verdict = {"n": 1, "reason": f"It says {canary}.", "verdict": "yes", "category": "geographical"}
    for name, reply in (("bias_analyze", {"verdicts": [verdict]}), ("bias_reason", {"reason": f"Look at {canary}."})):
        service.stub.script({"when": {"response_format.json_schema.name": name}, "reply": json.dumps(reply)})
    run = service.score(output=f"The {canary} village is always inferior.", store="result").json()
    assert (run["score"], run["reason"]) == (1.0, f"Look at {canary}.")
    kept = service.run(run["runId"])
    assert (kept["score"], kept["reason"]) == (1.0, None)
    assert kept["analyzeStepResult"]["results"][0]["category"] == "geographical"
    assert not traces(service.redis_url, canary.encode())


def test_store_none_keeps_nothing(service: Service) -> None:
    canary = f"canary{new_id()}"
    answer = service.score(output=f"The {canary} village is always inferior.", store="none")
    run = answer.json()
    assert (answer.status_code, run["score"]) == (200, 1.0)
    assert service.client.get(f"/v1/runs/{run['runId']}").status_code == 404
    assert not traces(service.redis_url, canary.encode())
    assert not traces(service.redis_url, run["runId"].encode())
    assert service.score(output="Fine.", store="none", mode="queued").status_code == 422


def test_a_deadline_is_kept(service: Service) -> None:
    service.stub.script({"hang": True, "times": None})
    inline = service.score(output=unique(), timeoutMs=300)
    assert (inline.status_code, inline.json()["code"]) == (504, "run_expired")
    queued = service.score(output=unique(), timeoutMs=300, mode="queued").json()
    for run_id in (inline.json()["runId"], queued["runId"]):
        run = service.run(run_id)
        assert (run["status"], run["score"], run["error"]["code"]) == ("expired", None, "run_expired")


def test_a_late_reason_costs_the_reason_only(service: Service) -> None:
    service.stub.script({"when": {"response_format.json_schema.name": "bias_reason"}, "hang": True})
    run = service.score(output=unique(), timeoutMs=2000).json()
    assert (run["status"], run["score"], run["reason"]) == ("completed", 0.3333, None)
    assert run["warnings"][0]["step"] == "generateReason"


def test_several_scorers_over_one_text(service: Service) -> None:
    service.stub.script({"match": "toxic", "status": 400, "body": {"error": {"message": "no"}}, "times": None})
    answer = service.client.post(
        "/v1/runs",
        json={
            "output": unique(),
            "runId": "many-" + new_id()[:8],
            "scorers": ["bias", {"id": "toxicity", "threshold": 0.5}],
        },
    )
    assert answer.status_code == 200
    bias, toxicity = answer.json()["runs"]
    assert (bias["scorerId"], bias["score"]) == ("bias", 0.3333)
    assert (toxicity["scorerId"], toxicity["status"], toxicity["score"]) == ("toxicity", "failed", None)
    for run in (bias, toxicity):
        assert service.run(run["runId"]) == run


def test_several_scorers_are_accepted_together_or_not_at_all(service: Service) -> None:
    prefix = "both-" + new_id()[:8]
    assert service.score(output=unique(), runId=f"{prefix}-bias").status_code == 200
    before = service.judge_calls()
    body = {"output": unique(), "runId": prefix, "scorers": ["toxicity", "bias"]}
    for mode in ("inline", "queued"):
        answer = service.client.post("/v1/runs", json=body | {"mode": mode})
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")
        assert service.client.get(f"/v1/runs/{prefix}-toxicity").status_code == 404
    assert service.judge_calls() == before


def test_one_of_several_runs_deleted_meanwhile_hides_no_other(service: Service) -> None:
    prefix = "gone-" + new_id()[:8]
    service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "hang": True})
    body = {"output": unique(), "runId": prefix, "scorers": ["bias", "toxicity"]}
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(service.client.post, "/v1/runs", json=body)
        toxicity_url = f"/v1/runs/{prefix}-toxicity"
        while service.client.get(toxicity_url).json()["status"] != "completed" or service.judge_calls() < 3:
            time.sleep(LOOK_AGAIN_S)
        assert service.client.delete(f"/v1/runs/{prefix}-bias").status_code == 204
    assert answer.result().status_code == 200
    bias, toxicity = answer.result().json()["runs"]
    assert (bias["status"], toxicity["status"], toxicity["score"]) == ("cancelled", "completed", 0.0)


def test_an_id_stands_for_one_request_only(service: Service) -> None:
    key = {"Idempotency-Key": new_id()}
    output, first, second = unique(), new_id(), new_id()
    assert service.score(output=output, runId=first, headers=key).status_code == 200
    assert service.score(output=output, runId=second, headers=key).status_code == 409
    assert service.score(output=unique(), runId=first, store="none").status_code == 409


def test_thresholds_are_read_with_the_direction(service: Service) -> None:
    output = unique()
    assert service.score(output=output, threshold=0.3).json()["passed"] is False
    assert service.score(output=output, threshold=0.3333).json()["passed"] is True
    assert service.score(output=output, threshold=3, options={"scale": 10}).json()["passed"] is False
    assert service.score(output=output).json()["passed"] is None


def test_sampling_is_the_same_everywhere(service: Service) -> None:
    keys = [f"conversation-{number}" for number in range(20)]
    statuses = {
        rate: [
            service.score(output="The sky is grey.", sampling={"rate": rate, "key": key}).status_code for key in keys
        ]
        for rate in (0, 0.5, 1)
    }
    assert set(statuses[0]) == {204}
    assert set(statuses[1]) == {200}
    assert set(statuses[0.5]) == {200, 204}
    again = [service.score(output="The sky is grey.", sampling={"rate": 0.5, "key": key}).status_code for key in keys]
    assert again == statuses[0.5]


def test_lists_filter_by_what_runs_are(service: Service) -> None:
    mark = new_id()
    ids = [service.score(output=unique(), metadata={"mark": mark, "n": n}).json()["runId"] for n in range(3)]
    listed = service.client.get("/v1/runs", params={"metadata.mark": mark, "limit": 2}).json()
    assert [run["runId"] for run in listed["items"]] == ids[:0:-1]
    rest = service.client.get("/v1/runs", params={"metadata.mark": mark, "cursor": listed["nextCursor"]}).json()
    assert [run["runId"] for run in rest["items"]] == ids[:1]
    assert rest["nextCursor"] is None
    both = {"metadata.mark": mark, "metadata.n": "1", "status": "completed", "scorerId": "bias"}
    assert [run["runId"] for run in service.client.get("/v1/runs", params=both).json()["items"]] == [ids[1]]
    assert service.client.get("/v1/runs", params=both | {"status": "failed"}).json()["items"] == []
