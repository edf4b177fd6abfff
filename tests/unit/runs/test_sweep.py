"""The sweeper: what it does with runs that are due, and when it keeps its hands off."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from app.domain.errors import StoreUnavailable
from app.domain.request import RunRequest
from app.domain.run import RunStatus
from app.ports import Due, RunKey, StoredRun
from app.runs import sweep as sweeping
from app.runs.deps import Deps
from app.runs.steadiness import Steadiness
from app.runs.sweep import keep_sweeping, sweep
from tests.unit.fakes import FakeClock
from tests.unit.judge.runs import new_run

LEASE_S = 15.0


class Store:
    """Runs that are due, a batch a look; those called `broken` can't be read, at `away` the store is away."""

    def __init__(self, *batches: list[Due]) -> None:
        self.batches = list(batches)
        self.calls: list[str] = []
        self.pings: list[Exception | None] = []

    async def due(self, limit: int, pause_s: float) -> list[Due]:
        self.calls.append("due")
        return self.batches.pop(0) if self.batches else []

    async def may_sweep(self, every_s: float) -> bool:
        self.calls.append("may_sweep")
        return True

    async def ping(self) -> None:
        self.calls.append("ping")
        if self.pings and (error := self.pings.pop(0)):
            raise error

    async def get(self, key: RunKey) -> StoredRun | None:
        if key.run_id.startswith("broken"):
            raise ValueError("no JSON")
        if key.run_id.startswith("away"):
            raise StoreUnavailable
        if key.run_id.startswith("gone"):
            return None
        status = RunStatus.COMPLETED if key.run_id.startswith("ended") else RunStatus.QUEUED
        run = new_run().model_copy(update={"status": status})
        return StoredRun(run.model_dump_json().encode(), status, "f")

    async def get_request(self, key: RunKey) -> RunRequest | None:
        return RunRequest(scorer_id="bias", output="A text.", options={}, model="stub/judge", timeout_ms=60_000)


class Queue:
    """Nobody has a job; notes who gets one."""

    def __init__(self) -> None:
        self.enqueued: list[str] = []

    async def missing(self, keys: list[RunKey]) -> list[RunKey]:
        return [key for key in keys if not key.run_id.startswith("in-line")]

    async def enqueue(self, key: RunKey, *_: Any, **__: Any) -> None:
        self.enqueued.append(key.run_id)


class House:
    """Deps for a sweep, in a process that is steady unless told otherwise."""

    def __init__(self, *batches: list[Due], lease_s: float = 0.0) -> None:
        self.store, self.queue, self.clock = Store(*batches), Queue(), FakeClock()
        self.told: list[str] = []
        self.steadiness = Steadiness(lease_s, max_gap_s=60.0)
        self.steadiness.seen()
        telemetry = type("Telemetry", (), {"run_recovered": lambda _, reason: self.told.append(reason)})()
        policy = type("Policy", (), {"lease_s": LEASE_S, "run_timeout_ms": 60_000})()
        self.deps = cast(
            Deps,
            type(
                "Deps",
                (),
                {
                    "store": self.store,
                    "queue": self.queue,
                    "clock": self.clock,
                    "telemetry": telemetry,
                    "policy": policy,
                    "steadiness": self.steadiness,
                },
            )(),
        )


def due(*run_ids: str) -> list[Due]:
    return [Due(RunKey("default", run_id), None) for run_id in run_ids]


@pytest.mark.anyio
async def test_who_has_no_job_gets_one_and_the_others_are_left_alone() -> None:
    house = House(due("in-line-1", "lost-1", "ended-1", "gone-1", "lost-2"))
    await sweep(house.deps)
    assert sorted(house.queue.enqueued) == ["lost-1", "lost-2"]
    assert house.told == ["job_lost", "job_lost"]


@pytest.mark.anyio
async def test_who_is_past_its_deadline_gets_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def end(deps: Deps, key: RunKey) -> None:
        ended.append(key.run_id)

    monkeypatch.setattr(sweeping, "end_overdue", end)
    now = FakeClock().now()
    runs = [(-60, "late"), (-1, "just-over"), (60, "early")]
    house = House([Due(RunKey("default", name), now + timedelta(seconds=seconds)) for seconds, name in runs])
    await sweep(house.deps)
    assert ended == ["late"]
    assert sorted(house.queue.enqueued) == ["early", "just-over"]


@pytest.mark.anyio
async def test_a_run_that_can_not_be_read_keeps_nobody_from_the_others() -> None:
    house = House(due("broken-1", "lost-1", "broken-2", "lost-2"))
    await sweep(house.deps)
    assert sorted(house.queue.enqueued) == ["lost-1", "lost-2"]


@pytest.mark.anyio
async def test_a_sweep_goes_on_while_batches_are_full_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "BATCH", 2)
    house = House(due("lost-1", "lost-2"), due("lost-3", "lost-4"), due("lost-5"))
    await sweep(house.deps)
    assert (len(house.queue.enqueued), house.store.calls.count("due")) == (5, 3)
    endless = House(*(due(f"lost-{number}", "in-line") for number in range(1000)))
    await sweep(endless.deps)
    assert endless.store.calls.count("due") == sweeping.BATCHES


@pytest.mark.anyio
async def test_a_sweep_ends_when_the_store_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "BATCH", 2)
    house = House(due("lost-1", "away-1"), due("lost-2", "lost-3"))
    await sweep(house.deps)
    assert house.store.calls.count("due") == 1
    assert not house.steadiness.is_steady


async def calls_of(house: House, until: Callable[[], bool]) -> list[str]:
    task = asyncio.create_task(keep_sweeping(house.deps))
    async with asyncio.timeout(10):
        while not until():  # noqa: ASYNC110 - the sweeper tells nobody
            await asyncio.sleep(0)
    task.cancel()
    return house.store.calls


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "SWEEP_S", 0.001)
    monkeypatch.setattr(sweeping, "RETRY_S", 0.001)


@pytest.mark.anyio
async def test_a_process_that_is_not_steady_only_looks_whether_the_store_is_there(quick: None) -> None:
    house = House(due("lost-1"), lease_s=60.0)
    calls = await calls_of(house, lambda: len(house.store.calls) >= 5)
    assert set(calls) == {"ping"}


@pytest.mark.anyio
async def test_a_sweeper_outlives_outages_and_its_own_bugs(quick: None) -> None:
    house = House(due("lost-1"))
    house.steadiness.lost()
    house.store.pings = [StoreUnavailable(), ValueError("a bug"), None]
    calls = await calls_of(house, lambda: bool(house.queue.enqueued))
    assert calls[:5] == ["ping", "ping", "ping", "may_sweep", "due"]
