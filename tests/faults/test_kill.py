"""Processes that are killed or frozen: every accepted run completes, once."""

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.faults.callers import Callers, Posted, assert_whole, new_mark, text_of, until
from tests.faults.ledger import Row
from tests.faults.servers import Server
from tests.integration.cli.house import House
from tests.integration.service import Service
from tests.stub_judge.process import StubProcess

Record = Callable[[Row], Row]
IN_FLIGHT = 50
# Every run completes within 30 s of the kill.
KILL_BOUND_S = 30.0
ANALYZE = {"when": {"response_format.json_schema.name": "bias_analyze"}}
# What the judge says too late: that nothing was biased.
LATE_REPLY = '{"verdicts": [{"n": 1, "reason": "It came too late.", "verdict": "no", "category": "none"}]}'


def post_and_hang(callers: Callers) -> list[Posted]:
    """Have runs in flight, each waiting for its second answer, which never comes; the first is paid for."""
    callers.stub.script({**ANALYZE, "hang": True, "times": IN_FLIGHT})
    posted = callers.post(IN_FLIGHT)
    callers.until_calls("bias_analyze", IN_FLIGHT)
    return posted


def judge_kill(callers: Callers, record: Record, fault: str, server: str, posted: list[Posted], since: float) -> None:
    row = record(callers.judge(fault, server, posted, since=since))
    assert_whole(row)
    assert row.slowest_s is not None
    assert row.slowest_s < KILL_BOUND_S
    # Steps that were answered before the kill are served from the cache.
    assert callers.asked() == {
        "bias_preprocess": IN_FLIGHT,
        "bias_analyze": 2 * IN_FLIGHT,
        "bias_reason": IN_FLIGHT,
    }


@pytest.mark.both_servers
@pytest.mark.parametrize("how", ["another worker is there", "the worker is started again"])
def test_a_worker_is_killed(server: Server, tmp_path: Path, record: Record, how: str) -> None:
    with Service(server.url, tmp_path) as service:
        callers = Callers(service.stub, service.clients)
        posted = post_and_hang(callers)
        if how == "another worker is there":
            service.workers.append(service.start_worker())
            service.worker_count = 2
            service.wait_until_ready()
        service.workers[0].kill()
        since = time.time()
        if how == "the worker is started again":
            service.workers.append(service.start_worker())
        judge_kill(callers, record, f"kill -9 of a worker; {how}", server.kind, posted, since)


def test_a_worker_of_assay_up_is_killed(server: Server, tmp_path: Path, record: Record) -> None:
    with (
        StubProcess() as stub,
        House(tmp_path, redis_url=server.url, judge_model="stub/judge", judge_base_url=stub.base_url) as house,
        house.client() as client,
    ):
        callers = Callers(stub, [client])
        posted = post_and_hang(callers)
        os.kill(house.pids()["Worker"], signal.SIGKILL)
        since = time.time()
        judge_kill(callers, record, "kill -9 of a worker; `assay up` starts it again", server.kind, posted, since)
        house.end(signal.SIGTERM)


def test_a_frozen_worker_wakes_too_late(server: Server, tmp_path: Path, record: Record) -> None:
    """Its judge's answers, of another score, are there when it wakes; nothing of them may count."""
    with Service(server.url, tmp_path) as service:
        callers = Callers(service.stub, service.clients)
        service.stub.script({**ANALYZE, "delay_ms": 2_000, "reply": LATE_REPLY, "times": IN_FLIGHT})
        posted = callers.post(IN_FLIGHT)
        callers.until_calls("bias_analyze", IN_FLIGHT)
        service.workers[0].freeze()
        since = time.time()
        service.workers.append(service.start_worker())
        runs = callers.ends(posted)
        assert {(run["status"], run["score"]) for run in runs} == {("completed", 1.0)}
        service.workers[0].thaw()
        # It shows that it is awake again, which is after it looked at what came in meanwhile.
        service.worker_count = 2
        service.wait_until_ready()
        more = callers.post(4)
        assert {run["status"] for run in callers.ends(more)} == {"completed"}
        row = record(
            callers.judge("worker frozen past its lease", server.kind, posted, since=since, paid_again=IN_FLIGHT)
        )
        assert_whole(row)
        assert row.slowest_s is not None
        assert row.slowest_s < KILL_BOUND_S
        assert callers.ends(posted) == runs


def test_a_worker_dies_between_dequeue_and_start(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, workers=0, worker_module="tests.faults.dies_at_start") as service:
        callers = Callers(service.stub, service.clients)
        posted = callers.post(IN_FLIGHT)
        dying = service.start_worker()
        until(lambda: not dying.alive, "the worker takes its jobs and dies")
        since = time.time()
        dying.stop()
        service.worker_module = "worker"
        service.workers.append(service.start_worker())
        row = record(callers.judge("kill between dequeue and start", server.kind, posted, since=since))
        assert_whole(row)
        assert row.slowest_s is not None
        assert row.slowest_s < KILL_BOUND_S
        assert {run["attempts"] for run in callers.ends(posted)} == {1}
        assert set(callers.asked().values()) == {IN_FLIGHT}


def test_the_api_is_killed_after_it_accepted(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, delay_ms=500) as service:
        callers = Callers(service.stub, service.clients)
        posted = callers.post(IN_FLIGHT)
        service.api.kill()
        since = time.time()
        service.api = service.start_api()
        service.wait_until_ready()
        row = record(callers.judge("kill -9 of the API after 202", server.kind, posted, since=since))
        assert_whole(row)
        assert set(callers.asked().values()) == {IN_FLIGHT}


INLINE = 20


@pytest.mark.parametrize("identity", ["Idempotency-Key", "runId"])
def test_the_api_is_killed_during_inline_runs_that_are_repeated(
    server: Server, tmp_path: Path, record: Record, identity: str
) -> None:
    with Service(server.url, tmp_path, workers=0, run_lease_s="3") as service:
        callers = Callers(service.stub, service.clients)
        service.stub.script({**ANALYZE, "hang": True, "times": INLINE})
        marks = [new_mark() for _ in range(INLINE)]

        def post(mark: str) -> httpx.Response:
            body = {"output": text_of(mark)} | ({"runId": mark} if identity == "runId" else {})
            headers = {"Idempotency-Key": mark} if identity == "Idempotency-Key" else {}
            return service.client.post("/v1/scorers/bias/runs", json=body, headers=headers)

        def kill() -> None:
            callers.until_calls("bias_analyze", INLINE)
            service.api.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with ThreadPoolExecutor(INLINE) as threads:
            lost = list(threads.map(lambda mark: _error_of(lambda: post(mark)), marks))
            killer.join()
            since = time.time()
            assert all(lost)
            service.api = service.start_api()
            service.wait_until_ready()
            answers = list(threads.map(post, marks))
        posted = [Posted(answer.json()["runId"], mark) for answer, mark in zip(answers, marks, strict=True)]
        row = record(
            callers.judge(f"kill -9 of the API, inline, repeated by {identity}", server.kind, posted, since=since)
        )
        assert_whole(row)
        assert callers.asked() == {"bias_preprocess": INLINE, "bias_analyze": 2 * INLINE, "bias_reason": INLINE}
        listed = service.client.get("/v1/runs", params={"limit": 100}).json()["items"]
        assert len(listed) == INLINE


def _error_of(call: Callable[[], httpx.Response]) -> bool:
    try:
        call()
    except httpx.TransportError:
        return True
    return False


def test_the_api_is_killed_during_inline_runs_that_nobody_repeats(
    server: Server, tmp_path: Path, record: Record
) -> None:
    with Service(server.url, tmp_path, run_lease_s="3") as service:
        callers = Callers(service.stub, service.clients)
        service.stub.script({**ANALYZE, "hang": True, "times": INLINE})
        posted = [Posted(mark, mark) for mark in (new_mark() for _ in range(INLINE))]

        def post(one: Posted) -> bool:
            body = {"output": text_of(one.mark), "runId": one.run_id}
            return _error_of(lambda: service.client.post("/v1/scorers/bias/runs", json=body))

        with ThreadPoolExecutor(INLINE) as threads:
            lost = threads.map(post, posted)
            callers.until_calls("bias_analyze", INLINE)
            service.api.kill()
            assert all(lost)
        since = time.time()
        service.api = service.start_api()
        service.wait_until_ready()
        row = record(callers.judge("kill -9 of the API, inline, nobody asks again", server.kind, posted, since=since))
        assert_whole(row)
        assert callers.asked() == {"bias_preprocess": INLINE, "bias_analyze": 2 * INLINE, "bias_reason": INLINE}
