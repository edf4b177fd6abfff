"""POST of one text: inline, queued, waiting, repeated."""

from typing import Any

import pytest

from tests.contract.running import INLINE_WAIT_S, RunningApp
from tests.contract.shapes import pointers, problem, run, unique
from tests.stub_judge.process import StubProcess

PROMPTS = {"preprocessPrompt", "analyzePrompt", "generateReasonPrompt"}


def test_inline_answers_with_the_finished_run_and_where_it_is(api: RunningApp) -> None:
    answer = api.score(output=unique())
    made = run(answer, 200)
    assert made["status"] == "completed"
    assert answer.headers["location"] == f"/v1/runs/{made['runId']}"
    assert answer.headers["vary"] == "Prefer"
    assert not {"retry-after", "preference-applied", "idempotent-replayed"} & set(answer.headers)
    again = api.client.get(answer.headers["location"])
    assert again.json() == made
    assert again.headers["etag"] == answer.headers["etag"]


@pytest.mark.parametrize(
    ("headers", "body", "applied"),
    [
        ([], {"mode": "queued"}, None),
        ([("Prefer", "respond-async")], {}, "respond-async"),
        ([("Prefer", "respond-async")], {"mode": "queued"}, "respond-async"),
        ([("Prefer", "foo=1"), ("Prefer", "respond-async; x=y, wait=0")], {}, "respond-async, wait=0"),
        ([("Prefer", "wait=bad, handling=strict")], {"mode": "queued"}, None),
    ],
)
def test_queued_answers_at_once(
    api: RunningApp, headers: list[tuple[str, str]], body: dict[str, Any], applied: str | None
) -> None:
    answer = api.client.post("/v1/scorers/bias/runs", json={"output": unique(), **body}, headers=headers)
    made = run(answer, 202)
    assert made["status"] == "queued"
    assert answer.headers["location"] == f"/v1/runs/{made['runId']}"
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.headers.get("preference-applied") == applied
    assert answer.headers["vary"] == "Prefer"


@pytest.mark.parametrize("prefer", ["wait=bad", "wait=-1", "x, y=z", '"', "respond-async=maybe"])
def test_other_preferences_are_ignored(api: RunningApp, prefer: str) -> None:
    answer = api.score(output=unique(), headers={"Prefer": prefer})
    assert run(answer, 200)["status"] == "completed"
    assert "preference-applied" not in answer.headers


def test_an_inline_run_that_outlives_its_wait_goes_on_in_the_queue(api: RunningApp, judge: StubProcess) -> None:
    judge.script({"hang": True})
    answer = api.score(output=unique(), headers={"Prefer": "wait=0"})
    assert run(answer, 202)["status"] in ("queued", "running")
    assert answer.headers["preference-applied"] == "wait=0"


def test_the_wait_is_capped_and_the_cap_is_told(api: RunningApp) -> None:
    answer = api.score(output=unique(), headers={"Prefer": "wait=3600"})
    assert run(answer, 200)["status"] == "completed"
    assert answer.headers["preference-applied"] == f"wait={int(INLINE_WAIT_S)}"


@pytest.mark.parametrize(("include", "present"), [("prompts", PROMPTS), ("", set()), ("score", set())])
def test_prompts_can_be_left_out(api: RunningApp, include: str, present: set[str]) -> None:
    body = {"output": unique()}
    answer = api.client.post("/v1/scorers/bias/runs", json=body, params={"include": include})
    made = run(answer, 200)
    assert set(made) & PROMPTS == present
    got = api.client.get(f"/v1/runs/{made['runId']}", params={"include": include})
    assert got.json() == made
    assert got.headers["etag"] == answer.headers["etag"]
    full = api.client.get(f"/v1/runs/{made['runId']}")
    assert (full.headers["etag"] == answer.headers["etag"]) == bool(present)


def test_not_sampled_is_no_content(api: RunningApp, judge: StubProcess) -> None:
    answer = api.score(output=unique(), sampling={"rate": 0, "key": "conversation-1"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert judge.calls()["total"] == 0


def test_a_threshold_is_compared(api: RunningApp) -> None:
    made = run(api.score(output=unique(), threshold=1.0), 200)
    assert (made["threshold"], made["passed"]) == (1.0, True)


def test_nothing_is_kept_with_store_none(api: RunningApp) -> None:
    answer = api.score(output=unique(), store="none")
    made = run(answer, 200)
    assert "location" not in answer.headers
    problem(api.client.get(f"/v1/runs/{made['runId']}"), 404, "not_found")


@pytest.mark.parametrize("quoted", [True, False])
def test_the_same_key_with_the_same_body_is_the_same_run(api: RunningApp, judge: StubProcess, quoted: bool) -> None:
    body = {"output": unique()}
    key = f"key-{body['output'][-33:-1]}"
    first = api.score(**body, headers={"Idempotency-Key": key})
    calls = judge.calls()["total"]
    second = api.score(**body, headers={"Idempotency-Key": f'"{key}"' if quoted else key})
    assert run(second, 200) == run(first, 200)
    assert second.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert judge.calls()["total"] == calls
    problem(api.score(output=unique(), headers={"Idempotency-Key": key}), 409, "idempotency_conflict")


def test_the_same_run_id_with_the_same_body_is_the_same_run(api: RunningApp) -> None:
    body = {"output": unique(), "runId": "chosen-by-the-caller"}
    first, second = api.score(**body), api.score(**body)
    assert run(second, 200) == run(first, 200)
    assert run(first, 200)["runId"] == "chosen-by-the-caller"
    assert second.headers["idempotent-replayed"] == "true"
    problem(api.score(**(body | {"output": unique()})), 409, "idempotency_conflict")


def test_a_failed_run_is_the_same_problem_when_it_is_sent_again(api: RunningApp, judge: StubProcess) -> None:
    judge.script({"refuse": True, "times": None})
    body = {"output": unique(), "runId": f"refused-{unique()[-33:-1]}"}
    first, second = api.score(**body), api.score(**body)
    assert problem(first, 502, "judge_refused")["runId"] == problem(second, 502, "judge_refused")["runId"]
    assert second.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    ("failure", "body", "status", "code"),
    [
        pytest.param({"refuse": True}, {}, 502, "judge_refused", id="refusal"),
        pytest.param({"status": 500}, {}, 502, "judge_unavailable", id="5xx"),
        pytest.param({"drop": "before"}, {}, 502, "judge_unavailable", id="connection cut"),
        pytest.param({"empty": True}, {}, 502, "judge_output_invalid", id="empty reply"),
        pytest.param({"reply": "certainly!"}, {}, 502, "judge_output_invalid", id="prose"),
        pytest.param({"cut": True}, {}, 502, "judge_output_invalid", id="cut reply"),
        pytest.param({"status": 401}, {}, 502, "not_configured", id="key refused"),
        pytest.param({"hang": True}, {"timeoutMs": 300}, 504, "run_expired", id="hangs"),
    ],
)
def test_a_judge_that_fails_inline_is_a_problem_and_the_run_is_kept(
    api: RunningApp, judge: StubProcess, failure: dict[str, Any], body: dict[str, Any], status: int, code: str
) -> None:
    judge.script(failure | {"times": None})
    answer = api.score(output=unique(), cache="off", **body)
    told = problem(answer, status, code)
    assert answer.headers["location"] == f"/v1/runs/{told['runId']}"
    kept = run(api.client.get(answer.headers["location"]), 200)
    assert kept["status"] in ("failed", "expired")
    assert kept["score"] is None
    assert (kept["error"]["code"], kept["error"]["title"]) == (code, told["title"])


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, ["#/output"]),
        ({"output": "  "}, ["#/output"]),
        ({"output": "a", "zz": 1}, ["#/zz"]),
        ({"output": "a", "options": {"zz": 1}}, ["#/options/zz"]),
        ({"output": "a", "options": {"scale": 0}}, ["#/options/scale"]),
        ({"output": "a", "model": "no/such"}, ["#/model"]),
        ({"output": "a", "timeoutMs": "5"}, ["#/timeoutMs"]),
        ({"output": "a", "metadata": {f"k{n}": n for n in range(17)}}, ["#/metadata"]),
        ({"output": "a", "runId": "short"}, ["#/runId"]),
        ({"output": [{"role": "user", "content": [{"text": 1}]}]}, ["#/output/0/content/0/text"]),
        ({"output": "a", "store": "none", "mode": "queued"}, ["#/store"]),
    ],
)
def test_every_fault_is_pointed_at(api: RunningApp, body: dict[str, Any], where: list[str]) -> None:
    assert pointers(problem(api.score(**body), 422, "invalid_request")) == where


def test_an_unknown_scorer_is_not_found(api: RunningApp) -> None:
    problem(api.score("no-such", output="a"), 404, "not_found")


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, '"unended'])
def test_what_is_no_idempotency_key_is_refused(api: RunningApp, key: str) -> None:
    told = problem(api.score(output="a", headers={"Idempotency-Key": key}), 422, "invalid_request")
    assert pointers(told) == ["#/Idempotency-Key"]


def test_several_scorers_answer_each_for_itself(api: RunningApp) -> None:
    body = {"output": unique(), "scorers": ["bias", {"id": "toxicity", "threshold": 0.1}]}
    answer = api.client.post("/v1/runs", json=body)
    assert answer.status_code == 200
    runs = answer.json()["runs"]
    assert [each["scorerId"] for each in runs] == ["bias", "toxicity"]
    assert all(api.client.get(f"/v1/runs/{each['runId']}").json() == each for each in runs)


def test_one_failed_scorer_does_not_hide_the_others(api: RunningApp, judge: StubProcess) -> None:
    judge.script({"refuse": True, "times": 1})
    body = {"output": unique(), "scorers": ["bias", "toxicity"]}
    answer = api.client.post("/v1/runs", json=body, params={"include": ""})
    assert answer.status_code == 200
    assert sorted(each["status"] for each in answer.json()["runs"]) == ["completed", "failed"]


def test_several_scorers_queued(api: RunningApp) -> None:
    body = {"output": unique(), "scorers": ["bias", "toxicity"], "runId": f"both-{unique()[-33:-1]}"}
    first = api.client.post("/v1/runs", json=body, headers={"Prefer": "respond-async"})
    assert first.status_code == 202
    assert first.headers["preference-applied"] == "respond-async"
    assert "retry-after" in first.headers
    second = api.client.post("/v1/runs", json=body, headers={"Prefer": "respond-async"})
    assert second.headers["idempotent-replayed"] == "true"
    assert second.json() == first.json()
    other = body | {"output": unique()}
    problem(api.client.post("/v1/runs", json=other), 409, "idempotency_conflict")


def test_a_fault_of_one_scorer_is_pointed_at(api: RunningApp) -> None:
    body = {"output": "a", "scorers": ["no-such", {"id": "bias", "options": {"zz": 1}}]}
    told = problem(api.client.post("/v1/runs", json=body), 422, "invalid_request")
    assert pointers(told) == ["#/scorers/0", "#/scorers/1/options/zz"]


def test_measure_is_the_older_shape(api: RunningApp) -> None:
    body = {"input": "Where to?", "output": unique(), "scale": 10}
    answer = api.client.post("/v1/metrics/bias/measure", json=body)
    assert answer.status_code == 200
    kept = api.client.get(answer.headers["location"]).json()
    assert answer.json() == {"score": kept["score"], "info": {"reason": kept["reason"]}}
    assert kept["scale"] == 10


def test_measure_fails_as_a_problem(api: RunningApp, judge: StubProcess) -> None:
    judge.script({"refuse": True, "times": None})
    problem(api.client.post("/v1/metrics/toxicity/measure", json={"output": unique()}), 502, "judge_refused")
    told = problem(api.client.post("/v1/metrics/bias/measure", json={"input": "a"}), 422, "invalid_request")
    assert pointers(told) == ["#/output"]
    problem(api.client.post("/v1/metrics/no-such/measure", json={"output": "a"}), 404, "not_found")


def test_a_measure_that_is_not_ready_in_time_names_its_run(api: RunningApp, judge: StubProcess) -> None:
    judge.script({"hang": True, "times": None})
    answer = api.client.post("/v1/metrics/bias/measure", json={"output": unique()})
    told = problem(answer, 504, "judge_timeout")
    assert answer.headers["location"] == f"/v1/runs/{told['runId']}"
