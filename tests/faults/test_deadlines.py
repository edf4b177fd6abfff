"""Deadlines hold in the queue and in a call; a cancelled run stops; what comes too late never counts."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.callers import THREADS, Callers, ended_at, until
from tests.faults.ledger import Row
from tests.faults.servers import Server
from tests.integration.service import Service

Record = Callable[[Row], Row]
RUNS = 20
ANALYZE = {"when": {"response_format.json_schema.name": "bias_analyze"}}
# A running run stops within a second.
CANCEL_BOUND_S = 1.0


def test_a_job_found_past_its_deadline_costs_no_call(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, workers=0) as service:
        callers = Callers(service.stub, service.clients)
        posted = callers.post(RUNS, timeoutMs=500)
        time.sleep(0.6)
        since = time.time()
        service.workers.append(service.start_worker())
        row = record(callers.judge("deadline over in the queue", server.kind, posted, since=since, status="expired"))
        assert (row.recovered, row.lost, row.duplicated) == (RUNS, 0, 0)
        assert callers.asked().total() == 0


def test_the_time_in_the_queue_counts_and_a_call_is_cut_at_the_deadline(
    server: Server, tmp_path: Path, record: Record
) -> None:
    with Service(server.url, tmp_path, workers=0) as service:
        callers = Callers(service.stub, service.clients)
        service.stub.script({**ANALYZE, "hang": True, "times": None})
        posted = callers.post(RUNS, timeoutMs=6_000)
        service.workers.append(service.start_worker())
        callers.until_calls("bias_analyze", RUNS)
        row = record(callers.judge("deadline over in a call", server.kind, posted, since=time.time(), status="expired"))
        assert (row.recovered, row.lost, row.duplicated) == (RUNS, 0, 0)
        # The calls are given up, not only forgotten.
        until(lambda: service.stub.calls()["in_flight"] == 0, "the judge is left alone")
        assert callers.asked()["bias_analyze"] == RUNS


@pytest.mark.parametrize("when", ["queued", "running"])
def test_a_cancelled_run_stops(server: Server, tmp_path: Path, record: Record, when: str) -> None:
    """The judge answers the cancelled ones all the same, and that counts for nothing."""
    with Service(server.url, tmp_path, workers=0) as service:
        callers = Callers(service.stub, service.clients)
        service.stub.script({**ANALYZE, "delay_ms": 3_000, "times": None})
        posted = callers.post(RUNS)
        if when == "running":
            service.workers.append(service.start_worker())
            callers.until_calls("bias_analyze", RUNS)
        since = time.time()

        def cancel(run_id: str) -> str:
            return service.client.post(f"/v1/runs/{run_id}/cancel").raise_for_status().json()["status"]

        with ThreadPoolExecutor(THREADS) as threads:
            assert set(threads.map(cancel, [one.run_id for one in posted])) == {"cancelled"}
        until(lambda: service.stub.calls()["in_flight"] == 0, "the calls are given up", CANCEL_BOUND_S + 5)
        gone = [call.ended for call in callers.stub.ledger() if call.outcome == "gone" and call.ended is not None]
        slowest = max(gone, default=since) - since
        if when == "queued":
            service.workers.append(service.start_worker())
            service.worker_count = 1
            service.wait_until_ready()
        time.sleep(3.5 if when == "running" else 1.0)
        row = callers.judge(f"cancelled while {when}", server.kind, posted, since=since, status="cancelled")
        row = record(replace(row, note=f"calls given up after {slowest:.2f} s" if gone else "no call"))
        assert (row.recovered, row.lost, row.duplicated) == (RUNS, 0, 0)
        assert max(ended_at(run) for run in callers.ends(posted)) - since < CANCEL_BOUND_S
        if when == "running":
            assert len(gone) == RUNS
            assert slowest < CANCEL_BOUND_S
        else:
            assert callers.asked().total() == 0
