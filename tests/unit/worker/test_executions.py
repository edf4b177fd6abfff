"""Every execution that began is told of exactly once, however it ends."""

import asyncio

import pytest
import redis

from tests.unit.worker.job_hashes import taken
from worker.bookkeeping import Ending, Outcome
from worker.executions import Executions
from worker.jobs import executor, slot


class Desk:
    """Executions with what they told; `release` lets the runs end."""

    def __init__(self) -> None:
        self.told: list[Ending] = []
        self.freed = 0
        self.begun: list[str] = []
        self.release = asyncio.Event()
        self.judge_is_back = asyncio.Event()
        self.executions = Executions(redis.Redis(), put=self.told.append, on_free=self.free)
        executor.set(self.execute)

    def free(self) -> None:
        self.freed += 1

    async def execute(self, tenant: str, run_id: str) -> None:
        self.begun.append(run_id)
        if run_id.startswith("waits"):
            with slot.get().lent(), slot.get().lent():
                await self.judge_is_back.wait()
        await self.release.wait()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    @property
    def outcomes(self) -> dict[str, Outcome]:
        return {ending.taken.job_id: ending.outcome for ending in self.told}


@pytest.mark.anyio
async def test_ends_are_told_once_and_kept_in_hand_until_they_are_recorded() -> None:
    desk = Desk()
    desk.executions.start(taken("a"))
    desk.executions.start(taken("b"))
    await desk.settle()
    assert desk.begun == ["a", "b"]
    desk.release.set()
    await desk.settle()
    assert desk.outcomes == {"job-a": Outcome.DONE, "job-b": Outcome.DONE}
    assert len(desk.executions) == 2
    assert [held.job_id for held in desk.executions.taken] == ["job-a", "job-b"]
    desk.executions.forget(desk.told)
    assert len(desk.executions) == 0
    assert desk.freed == 1
    await desk.executions.wait_until_idle()


@pytest.mark.anyio
@pytest.mark.parametrize("steps", [0, 5])
async def test_one_of_many_is_stopped(steps: int) -> None:
    desk = Desk()
    for name in ("a", "b", "c"):
        desk.executions.start(taken(name))
    for _ in range(steps):
        await asyncio.sleep(0)
    desk.executions.stop(job_id="job-b")
    desk.executions.stop(job_id="job-unknown")
    await desk.settle()
    assert desk.outcomes == {"job-b": Outcome.STOPPED}
    desk.executions.stop(execution_id="execution-c")
    await desk.settle()
    assert desk.outcomes == {"job-b": Outcome.STOPPED, "job-c": Outcome.STOPPED}
    desk.release.set()
    await desk.settle()
    assert desk.outcomes["job-a"] is Outcome.DONE


@pytest.mark.anyio
@pytest.mark.parametrize("steps", [0, 5])
async def test_what_still_runs_is_given_back(steps: int) -> None:
    desk = Desk()
    desk.executions.start(taken("a"))
    desk.executions.start(taken("b"))
    for _ in range(steps):
        await asyncio.sleep(0)
    desk.executions.give_back()
    await desk.settle()
    assert desk.outcomes == {"job-a": Outcome.RETURNED, "job-b": Outcome.RETURNED}
    assert len(desk.told) == 2


@pytest.mark.anyio
async def test_who_waits_for_its_judge_has_lent_its_place_until_the_judge_is_back() -> None:
    desk = Desk()
    for name in ("waits-1", "waits-2", "a"):
        desk.executions.start(taken(name))
    await desk.settle()
    assert (len(desk.executions), desk.executions.lent) == (3, 2)
    assert desk.freed >= 2
    desk.judge_is_back.set()
    await desk.settle()
    assert (len(desk.executions), desk.executions.lent) == (3, 0)
    desk.release.set()
    await desk.settle()
    assert set(desk.outcomes.values()) == {Outcome.DONE}


@pytest.mark.anyio
async def test_a_worker_that_drains_gives_back_at_once_what_only_waits_for_its_judge() -> None:
    desk = Desk()
    for name in ("waits-1", "a"):
        desk.executions.start(taken(name))
    await desk.settle()
    desk.executions.start(taken("waits-2"))
    desk.executions.drain()
    await desk.settle()
    assert desk.outcomes == {"job-waits-1": Outcome.RETURNED, "job-waits-2": Outcome.RETURNED}
    desk.release.set()
    await desk.settle()
    assert desk.outcomes["job-a"] is Outcome.DONE
