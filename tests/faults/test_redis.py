"""Redis restarted, away, cut off or silent: no accepted run is lost, and nothing hangs meanwhile."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.callers import Callers, Posted, assert_whole, until
from tests.faults.ledger import Row
from tests.faults.proxy import Proxy
from tests.faults.scale import scaled
from tests.faults.servers import Server
from tests.integration.service import Service

Record = Callable[[Row], Row]
QUEUED = 200
# Long enough for every lease to end.
OUTAGE_S = 20.0
CUT_S = scaled(20.0, 6.0)
# "GETs answer 503 meanwhile and never hang": Redis is given 4 s, and two shared cores some more.
HANG_S = 10.0
JUDGE_MS = 150
CONCURRENCY = "8"
STEPS = 3


def post_many(service: Service) -> tuple[Callers, list[Posted]]:
    """Have runs in all states: some ended, some running, most of them queued."""
    callers = Callers(service.stub, service.clients)
    posted = callers.post(QUEUED)
    callers.until_calls("bias_reason", QUEUED // 10)
    return callers, posted


def assert_away(service: Service, run_id: str) -> float:
    """Everything that needs Redis says 503 within its time; returns the slowest answer's seconds."""
    slowest = 0.0
    for method, path in (("GET", f"/v1/runs/{run_id}"), ("GET", f"/v1/runs/{run_id}?wait=20"), ("GET", "/v1/runs")):
        began = time.monotonic()
        answer = service.client.request(method, path, timeout=HANG_S)
        slowest = max(slowest, time.monotonic() - began)
        assert (answer.status_code, answer.json()["code"]) == (503, "capacity_reduced")
        assert int(answer.headers["Retry-After"]) > 0
    assert service.client.get("/livez", timeout=HANG_S).status_code == 200
    ready = service.client.get("/readyz", timeout=HANG_S)
    assert ready.status_code == 503
    return slowest


def judge_outage(
    service: Service,
    callers: Callers,
    record: Record,
    posted: list[Posted],
    fault: str,
    kind: str,
    since: float,
    note: str,
) -> None:
    service.wait_until_ready()
    # Steps that were answered while nothing could be written down may be paid for again: at most what was under way.
    allowed = STEPS * int(CONCURRENCY) * service.worker_count
    row = record(callers.judge(fault, kind, posted, since=since, patience_s=90, paid_again=allowed, note=note))
    assert_whole(row)
    after = callers.ends(callers.post(5))
    assert {run["status"] for run in after} == {"completed"}


@pytest.mark.both_servers
def test_redis_is_killed_and_started_again_on_its_file(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, workers=2, delay_ms=JUDGE_MS, worker_concurrency=CONCURRENCY) as service:
        callers, posted = post_many(service)
        server.kill()
        server.start()
        judge_outage(service, callers, record, posted, "kill -9 and restart of Redis", server.kind, time.time(), "")


def test_redis_is_away_for_20_seconds(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, workers=2, delay_ms=JUDGE_MS, worker_concurrency=CONCURRENCY) as service:
        callers, posted = post_many(service)
        server.stop()
        back_at = time.monotonic() + OUTAGE_S
        slowest = assert_away(service, posted[0].run_id)
        time.sleep(back_at - time.monotonic())
        server.start()
        note = f"slowest 503: {slowest:.1f} s"
        judge_outage(service, callers, record, posted, "Redis away for 20 s", server.kind, time.time(), note)


@pytest.mark.parametrize("how", ["cut", "silent"])
def test_redis_can_not_be_reached(server: Server, tmp_path: Path, record: Record, how: str) -> None:
    with (
        Proxy(server.port) as proxy,
        Service(
            f"redis://127.0.0.1:{proxy.port}", tmp_path, workers=2, delay_ms=JUDGE_MS, worker_concurrency=CONCURRENCY
        ) as service,
    ):
        callers, posted = post_many(service)
        (proxy.cut if how == "cut" else proxy.silence)()
        back_at = time.monotonic() + CUT_S
        slowest = assert_away(service, posted[0].run_id)
        time.sleep(max(0.0, back_at - time.monotonic()))
        proxy.mend()
        note = f"slowest 503: {slowest:.1f} s"
        judge_outage(
            service, callers, record, posted, f"way to Redis {how} for {CUT_S:g} s", server.kind, time.time(), note
        )


def test_one_worker_alone_can_not_reach_redis(server: Server, tmp_path: Path, record: Record) -> None:
    """Another takes its runs over; whoever can't know whose they are pays for nothing more."""
    runs = 20
    with (
        Proxy(server.port) as proxy,
        Service(server.url, tmp_path, workers=0, delay_ms=4_000, run_lease_s="3") as service,
    ):
        callers = Callers(service.stub, service.clients)
        service.redis_url = f"redis://127.0.0.1:{proxy.port}"
        service.workers.append(service.start_worker())
        service.redis_url = server.url
        posted = callers.post(runs)
        callers.until_calls("bias_preprocess", runs)
        proxy.silence()
        since = time.time()
        service.workers.append(service.start_worker())
        # What was under way is asked twice.
        row = callers.judge("one worker alone cut off", server.kind, posted, since=since, paid_again=runs)
        proxy.mend()
        # Its worker is alive again after it was told whose its runs are.
        service.worker_count = 2
        service.wait_until_ready()
        assert_whole(record(row))
        again = callers.ends(callers.post(4))
        assert {run["status"] for run in again} == {"completed"}
        asked = {"bias_preprocess": 2 * runs + 4, "bias_analyze": runs + 4, "bias_reason": runs + 4}
        assert callers.asked() == asked


def test_the_caches_own_server_is_killed(server: Server, tmp_path: Path, record: Record) -> None:
    with (
        Server(server.kind, tmp_path / "cache") as cache,
        Service(
            server.url, tmp_path, cache_redis_url=cache.url, delay_ms=JUDGE_MS, worker_concurrency=CONCURRENCY
        ) as service,
    ):
        callers = Callers(service.stub, service.clients)
        posted = callers.post(50)
        callers.until_calls("bias_reason", 5)
        cache.kill()
        since = time.time()
        assert service.client.get("/readyz").status_code == 200
        row = record(callers.judge("the cache's Redis killed, for good", server.kind, posted, since=since))
        assert_whole(row)
        assert set(callers.asked().values()) == {50}


def test_nothing_starts_on_a_server_that_may_evict_runs(server: Server, tmp_path: Path) -> None:
    with Server(server.kind, tmp_path / "evicting", maxmemory="64mb", maxmemory_policy="allkeys-lru") as evicting:
        service = Service(evicting.url, tmp_path)
        with service.stub:
            for start in (service.start_api, service.start_worker):
                process = start()
                until(lambda process=process: not process.alive, "the start is refused")
                assert process.stop() == 2
                said = process.log.read_text()
                assert "noeviction" in said
                assert "Traceback" not in said
        for client in service.clients:
            client.close()
