"""Jobs that wait for their judge lend their places to others, and are given back at once by a worker that stops."""

import asyncio

import pytest
import redis

from app.adapters.rq_queue import RqRunQueue
from app.domain.request import Priority
from tests.integration.worker.running import Runs, key, working
from worker.jobs import slot
from worker.worker import IN_HAND_PER_PLACE

LINE, IN_HAND = "rq:queue:assay-normal", "rq:wip:assay-normal"
LOOK_AGAIN_S = 0.02


class Waiting(Runs):
    """Runs whose judge is away until `judge_is_back`; then each takes until `release`."""

    def __init__(self) -> None:
        super().__init__(held=True)
        self.judge_is_back = asyncio.Event()
        self.judged = self.most_judged = 0

    async def execute(self, tenant: str, run_id: str) -> None:
        place = slot.get()
        assert place is not None
        await self._note(self.begun, run_id)
        if "waits" in run_id:
            with place.lent():
                await self.judge_is_back.wait()
        self.judged += 1
        self.most_judged = max(self.most_judged, self.judged)
        await self.release.wait()
        self.judged -= 1
        await self._note(self.ended, run_id)


async def put(queue: RqRunQueue, kind: str, count: int) -> None:
    for number in range(count):
        await queue.enqueue(key(f"{kind}{number}"), Priority.NORMAL, 60)


@pytest.mark.anyio
async def test_what_waits_for_its_judge_keeps_nobody_from_the_judge_that_is_there(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Waiting()
    await put(queue, "waits", 10)
    await put(queue, "goes", 5)
    async with working(valkey_url, runs.execute, concurrency=2):
        # All that wait, and the two that there are places for.
        await runs.until(begun=12)
        assert (client.zcard(IN_HAND), client.llen(LINE), runs.judged) == (12, 3, 2)
        # Who comes back waits for nobody, and no more are taken until there is a place again.
        runs.judge_is_back.set()
        while runs.judged < 12:  # noqa: ASYNC110 - they are woken one by one
            await asyncio.sleep(LOOK_AGAIN_S)
        assert client.llen(LINE) == 3
        runs.release.set()
        await runs.until(ended=15)
    assert runs.most_judged == 12


@pytest.mark.anyio
async def test_no_more_are_taken_in_hand_than_a_worker_can_hold(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Waiting()
    await put(queue, "waits", IN_HAND_PER_PLACE + 4)
    async with working(valkey_url, runs.execute, concurrency=1):
        await runs.until(begun=IN_HAND_PER_PLACE)
        await put(queue, "goes", 1)
        await asyncio.sleep(LOOK_AGAIN_S)
        assert (client.zcard(IN_HAND), client.llen(LINE)) == (IN_HAND_PER_PLACE, 5)
        runs.judge_is_back.set()
        runs.release.set()
        await runs.until(ended=IN_HAND_PER_PLACE + 5)


@pytest.mark.anyio
async def test_a_worker_that_stops_gives_back_at_once_what_waits_and_finishes_the_rest(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Waiting()
    await put(queue, "waits", 3)
    await put(queue, "goes", 2)
    async with working(valkey_url, runs.execute, concurrency=2, grace=30.0) as worker:
        await runs.until(begun=5)
        worker.stop()
        while client.llen(LINE) < 3:  # noqa: ASYNC110 - it is Redis that tells
            await asyncio.sleep(LOOK_AGAIN_S)
        assert (client.zcard(IN_HAND), runs.judged) == (2, 2)
        runs.release.set()
    assert sorted(runs.ended) == [key(f"goes{number}").run_id for number in range(2)]
    assert client.llen(LINE) == 3
