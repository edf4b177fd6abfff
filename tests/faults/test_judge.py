"""A judge that hangs, refuses, breaks or is down: queued runs wait and complete when it is back."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults.callers import Callers, assert_whole, until
from tests.faults.ledger import Row
from tests.faults.scale import scaled
from tests.faults.servers import Server
from tests.integration.service import Service
from tests.stub_judge.process import StubProcess

Record = Callable[[Row], Row]
QUEUED = 40
BROKEN_S = scaled(20.0, 6.0)
# A minute, in full.
DOWN_S = scaled(60.0, 12.0)
BREAKER_FAILURES = 5
WAYS: dict[str, dict[str, Any]] = {
    "hangs": {"hang": True},
    "answers 500": {"status": 500, "body": {"error": {"message": "broken"}}},
    "answers 529": {"status": 529, "body": {"error": {"message": "overloaded"}}},
    "drops mid-body": {"drop": "mid_body"},
}


@pytest.mark.parametrize("way", list(WAYS))
def test_queued_runs_wait_for_a_judge_that_is_broken(server: Server, tmp_path: Path, record: Record, way: str) -> None:
    """All calls reach it before its breaker opens; after that few do, while it is broken."""
    with Service(server.url, tmp_path, judge_timeout_s="1") as service:
        callers = Callers(service.stub, service.clients)
        service.stub.script({**WAYS[way], "times": None})
        posted = callers.post(QUEUED)
        began = time.time()
        time.sleep(BROKEN_S)
        service.stub.unscript()
        since = time.time()
        broken = [call.began for call in callers.stub.ledger() if call.began < since]
        late = sum(moment > began + BROKEN_S / 2 for moment in broken)
        note = f"{len(broken)} calls while broken, {late} in the second half"
        row = record(callers.judge(f"judge {way} for {BROKEN_S:g} s", server.kind, posted, since=since, note=note))
        assert_whole(row)
        # Those that were under way when the breaker opened, and single trials since: no storm.
        assert len(broken) <= QUEUED + BREAKER_FAILURES + BROKEN_S
        assert late <= BROKEN_S / 2


def test_queued_runs_wait_for_a_judge_that_is_down(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, workers=2) as service:
        callers = Callers(service.stub, service.clients)
        service.stub.go_down()
        posted = callers.post(QUEUED)
        time.sleep(DOWN_S)
        service.stub.come_back()
        since = time.time()
        row = record(callers.judge(f"judge down for {DOWN_S:g} s", server.kind, posted, since=since))
        assert_whole(row)
        assert set(callers.asked().values()) == {QUEUED}


def test_retry_after_is_kept_by_all_processes(server: Server, tmp_path: Path, record: Record) -> None:
    pause_s = 5
    with Service(server.url, tmp_path, workers=3, worker_concurrency="4") as service:
        callers = Callers(service.stub, service.clients)
        refusal = {"status": 429, "headers": {"retry-after": str(pause_s)}, "body": {"error": {"message": "slower"}}}
        service.stub.script({**refusal, "times": 1})
        posted = callers.post(QUEUED)
        until(lambda: any(call.outcome == 429 for call in callers.stub.ledger()), "the judge refuses a call")
        row = callers.judge("judge answers 429, Retry-After 5 s", server.kind, posted, since=time.time())
        calls = callers.stub.ledger()
        refused_at = next(call.ended for call in calls if call.outcome == 429)
        assert refused_at is not None
        early = [call for call in calls if refused_at < call.began < refused_at + pause_s]
        row = record(replace(row, note=f"{len(early)} calls within the pause"))
        assert_whole(row)
        # What was sent before the news of the pause reached every process; a process has four calls at most.
        assert len(early) <= 12


WORKERS = 10
LIMIT = scaled(60, 30)
LOOK_S = scaled(75.0, 20.0)
MINUTE_S = 60.0


def most_within(moments: list[float], span_s: float) -> int:
    """Return the most moments that lie within any span of so many seconds."""
    return max((sum(start <= moment < start + span_s for moment in moments) for start in moments), default=0)


def test_ten_workers_keep_one_limit(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(
        server.url, tmp_path, workers=WORKERS, worker_concurrency="4", judge_requests_per_minute=str(LIMIT)
    ) as service:
        callers = Callers(service.stub, service.clients)
        posted = callers.post(LIMIT * 2)
        callers.until_calls("bias_preprocess", 1)
        time.sleep(LOOK_S)
        moments = [call.began for call in callers.stub.ledger()]
        most = most_within(moments, MINUTE_S)
        note = f"{most} calls in the busiest {min(MINUTE_S, LOOK_S):g} s, {len(moments)} in {LOOK_S:g} s"
        ended = sum(callers.get(one.run_id)["status"] == "completed" for one in posted)
        record(Row(f"{WORKERS} workers, limit {LIMIT}/min", server.kind, len(posted), ended, 0, 0, None, note))
        assert 0 < most <= LIMIT


def test_processes_share_a_bound_of_calls_under_way(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(
        server.url, tmp_path, workers=3, worker_concurrency="8", delay_ms=50, judge_max_in_flight_total="3"
    ) as service:
        callers = Callers(service.stub, service.clients)
        since = time.time()
        posted = callers.post(QUEUED)
        row = callers.judge("3 workers, 3 calls under way", server.kind, posted, since=since)
        most = service.stub.calls()["max_in_flight"]
        row = record(replace(row, note=f"{most} calls at once"))
        assert_whole(row)
        assert most <= 3


def test_another_model_answers_and_is_named(server: Server, tmp_path: Path, record: Record) -> None:
    with StubProcess() as first, StubProcess() as second:
        models = tmp_path / "models.toml"
        models.write_text(
            'default = "stub/first"\n'
            f'[[models]]\nid = "stub/first"\nbase_url = "{first.base_url}"\nfallbacks = ["stub/second"]\n'
            f'[[models]]\nid = "stub/second"\nbase_url = "{second.base_url}"\n'
        )
        with Service(server.url, tmp_path, models_file=str(models), judge_model="", judge_base_url="") as service:
            callers = Callers(second, service.clients)
            first.go_down()
            since = time.time()
            posted = callers.post(QUEUED)
            row = record(callers.judge("first model down, another is named", server.kind, posted, since=since))
            assert_whole(row)
            runs = callers.ends(posted)
            assert {run["model"] for run in runs} == {"stub/second"}
            assert {warning["code"] for run in runs for warning in run["warnings"]} == {"fallback_model"}
