"""Leases of others are looked at only by a worker that is sure of its own."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.unit.worker.job_hashes import taken
from worker import heartbeat
from worker.bookkeeping import Bookkeeping, Recovered, Taken
from worker.heartbeat import Heartbeat


class Ledger:
    """A bookkeeping that notes what it is asked, and fails at these beats."""

    def __init__(self, *outages: int) -> None:
        self.outages = outages
        self.calls: list[str] = []
        self.beats = 0
        self.is_recovered = asyncio.Event()

    async def beat(self, identity: Mapping[str, Any], running: Iterable[Taken]) -> None:
        self.beats += 1
        if self.beats in self.outages:
            self.calls.append("away")
            raise RedisConnectionError
        self.calls.append(f"{identity['name']} holds {', '.join(held.job_id for held in running)}")

    async def recover(self) -> Recovered:
        self.calls.append("recover")
        if self.beats > max(self.outages, default=0):
            self.is_recovered.set()
        return Recovered(put_back=1, failed=0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "LEASE_S", 0.1)
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.05)
    monkeypatch.setattr(heartbeat, "RETRY_S", 0.01)


async def calls_of(ledger: Ledger) -> list[str]:
    beating = asyncio.create_task(
        Heartbeat(cast(Bookkeeping, ledger), lambda: {"name": "a worker"}, lambda: [taken("a"), taken("b")]).run()
    )
    await ledger.is_recovered.wait()
    beating.cancel()
    return ledger.calls


@pytest.mark.anyio
async def test_a_beat_renews_what_is_in_hand() -> None:
    calls = await calls_of(Ledger())
    assert calls[0] == "a worker holds job-a, job-b"


@pytest.mark.anyio
async def test_a_new_worker_takes_nothing_over_at_once() -> None:
    calls = await calls_of(Ledger())
    assert calls[1] != "recover"
    assert calls[-1] == "recover"


@pytest.mark.anyio
@pytest.mark.parametrize("outages", [(1,), (3,), (4, 5), (2, 6)])
async def test_after_an_outage_others_are_left_a_lease_to_come_back(outages: tuple[int, ...]) -> None:
    calls = await calls_of(Ledger(*outages))
    last = len(calls) - 1 - calls[::-1].index("away")
    assert calls[last + 1] == "a worker holds job-a, job-b"
    assert calls[last + 2] != "recover"
    assert calls[-1] == "recover"


@pytest.mark.anyio
async def test_only_a_beat_that_was_taken_is_told() -> None:
    ledger = Ledger(1, 2)
    told: list[int] = []
    beating = asyncio.create_task(
        Heartbeat(cast(Bookkeeping, ledger), lambda: {"name": "a"}, list, lambda: told.append(ledger.beats)).run()
    )
    await ledger.is_recovered.wait()
    beating.cancel()
    assert told == list(range(3, ledger.beats + 1))
