"""A flood of queued runs: memory stays, reads stay quick, the full queue stores nothing, nobody starves."""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx
import psutil
import pytest

from tests.faults.callers import Callers, Posted, ended_at, new_mark, text_of
from tests.faults.ledger import Row
from tests.faults.scale import scaled
from tests.faults.servers import Server
from tests.integration.service import Service

Record = Callable[[Row], Row]
FLOOD = scaled(20_000, 2_000)
SENDERS = 8
READ_EVERY_S = 0.02
IDLE_READS = 100
MEBI = 2**20
# "Memory of the API stays flat": what the runs would take if they were kept there is a multiple of this.
GROWTH_MIB = 40.0
MANY = scaled(10_000, 1_000)
FEW = 10


def post_one(client: httpx.Client, priority: str = "bulk", authorization: str = "Bearer one") -> Posted:
    mark = new_mark()
    body = {"output": text_of(mark), "mode": "queued", "priority": priority}
    answer = client.post("/v1/scorers/bias/runs", json=body, headers={"Authorization": authorization})
    assert answer.status_code == 202, answer.text
    return Posted(answer.json()["runId"], mark)


def p99(seconds: list[float]) -> float:
    """Return the 99th percentile in milliseconds."""
    return statistics.quantiles(seconds, n=100)[-1] * 1000


def read(client: httpx.Client, run_id: str) -> float:
    """GET a run; returns the seconds it took."""
    began = time.perf_counter()
    client.get(f"/v1/runs/{run_id}").raise_for_status()
    return time.perf_counter() - began


@contextmanager
def reading(url: str, run_id: str, seconds: list[float]) -> Iterator[None]:
    """GET a run again and again within the block."""
    over = Event()

    def go_on() -> None:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            while not over.wait(READ_EVERY_S):
                seconds.append(read(client, run_id))

    reader = Thread(target=go_on)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join()


def flood(url: str, count: int) -> list[Posted]:
    """Submit so many bulk runs over a few connections."""

    def send(part: int) -> list[Posted]:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            return [post_one(client) for _ in range(part)]

    with ThreadPoolExecutor(SENDERS) as threads:
        return [one for part in threads.map(send, [count // SENDERS] * SENDERS) for one in part]


@pytest.mark.timeout(600)
def test_a_flood_changes_neither_memory_nor_reads(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, delay_ms=50) as service:
        callers = Callers(service.stub, service.clients)
        first = callers.post(20)
        callers.ends(first)
        url = str(service.client.base_url)
        api = psutil.Process(service.api.child.pid)
        idle = [read(service.client, first[0].run_id) for _ in range(IDLE_READS)]
        flood(url, FLOOD // 10)
        before = api.memory_info().rss / MEBI
        during: list[float] = []
        with reading(url, first[0].run_id, during):
            began = time.monotonic()
            posted = flood(url, FLOOD)
            took = time.monotonic() - began
            urgent = post_one(service.client, "high")
            waiting = sum(callers.get(one.run_id)["status"] == "queued" for one in posted[-50:])
            (run,) = callers.ends([urgent])
        after = api.memory_info().rss / MEBI
        note = (
            f"RSS {before:.0f} to {after:.0f} MiB; GET p99 {p99(idle):.1f} ms idle, {p99(during):.1f} ms during; "
            f"{FLOOD / took:.0f} POST/s"
        )
        record(Row(f"flood of {FLOOD}", server.kind, FLOOD, len(posted), 0, 0, None, note))
        assert after - before < GROWTH_MIB
        # The urgent run came last and overtook those that still waited then.
        assert waiting > 0
        assert run["status"] == "completed"
        late = callers.get(posted[-1].run_id)
        assert late["status"] == "queued" or ended_at(late) > ended_at(run)


def test_a_full_queue_stores_nothing(server: Server, tmp_path: Path, record: Record) -> None:
    limit = 50
    with Service(server.url, tmp_path, workers=0, queue_limit=str(limit)) as service:
        callers = Callers(service.stub, service.clients)
        posted = callers.post(limit)
        refused = [
            service.score(output=text_of(new_mark()), mode="queued", runId=f"refused-{number:04d}")
            for number in range(20)
        ]
        for number, answer in enumerate(refused):
            assert (answer.status_code, answer.json()["code"]) == (503, "capacity_reduced")
            assert int(answer.headers["Retry-After"]) > 0
            assert service.client.get(f"/v1/runs/refused-{number:04d}").status_code == 404
        listed = service.client.get("/v1/runs", params={"limit": 100}).json()["items"]
        assert {run["runId"] for run in listed} == {one.run_id for one in posted}
        service.workers.append(service.start_worker())
        since = time.time()
        row = record(callers.judge("queue full, 20 refused", server.kind, posted, since=since))
        assert (row.recovered, row.lost, row.duplicated) == (limit, 0, 0)


def test_urgent_runs_overtake(server: Server, tmp_path: Path) -> None:
    with Service(server.url, tmp_path, workers=0, worker_concurrency="1") as service:
        callers = Callers(service.stub, service.clients)
        bulk = callers.post(20, priority="bulk")
        normal = callers.post(10, priority="normal")
        high = callers.post(5, priority="high")
        service.workers.append(service.start_worker())
        ends = {run["runId"]: ended_at(run) for run in callers.ends([*bulk, *normal, *high])}

        def let_past(urgent: list[Posted], others: list[Posted]) -> int:
            last = max(ends[one.run_id] for one in urgent)
            return sum(ends[one.run_id] < last for one in others)

        # Every fifth place is offered to lower priorities first.
        assert let_past(high, [*normal, *bulk]) <= len(high) // 4 + 1
        assert let_past([*high, *normal], bulk) <= (len(high) + len(normal)) // 4 + 1


@pytest.mark.timeout(300)
def test_ones_many_runs_do_not_starve_anothers_few(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, delay_ms=50, worker_concurrency="8") as service:
        callers = Callers(service.stub, service.clients)
        many = callers.post(MANY, authorization="Bearer many")
        since = time.time()
        few = callers.post(FEW, authorization="Bearer few")
        ends = callers.ends(few)
        waiting = sum(callers.get(one.run_id)["status"] == "queued" for one in many[-50:])
        slowest = max(ended_at(run) for run in ends) - since
        note = f"{waiting} of the last 50 of the many still waited then"
        record(Row(f"{FEW} runs behind another's {MANY}", server.kind, FEW, len(ends), 0, 0, slowest, note))
        assert {run["status"] for run in ends} == {"completed"}
        assert waiting > 0
