"""Runs that were lost with their processes: suspects go one at a time, and the third loss ends a run."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from app.domain.run import MAX_LOSSES, SUSPECT_LOSSES, AttemptOutcome, Run, RunStatus
from app.ports import NewRun, RunKey, RunSuspected
from app.runs.change import retry_run
from app.runs.claiming import claim_run
from app.runs.deps import Deps
from app.runs.execute import execute_queued_run
from app.runs.follow import get_run
from app.settings import Settings
from app.wiring import Wired, build_deps
from tests.integration.store.making import run_maker
from tests.stub_judge.process import StubProcess

pytestmark = pytest.mark.anyio

LEASE_S = 1.0
LOST, COMPLETED = AttemptOutcome.LOST, AttemptOutcome.COMPLETED


class Place:
    """A worker's slot that notes whether it is lent."""

    def __init__(self) -> None:
        self.is_lent = False
        self.was_lent = asyncio.Event()

    @contextmanager
    def lent(self) -> Iterator[None]:
        self.is_lent = True
        self.was_lent.set()
        try:
            yield
        finally:
            self.is_lent = False


@pytest.fixture
async def wired(valkey_url: str) -> AsyncIterator[Wired]:
    """A process that has seen Redis for a lease, with a judge that takes its time."""
    with StubProcess(delay_ms=30) as stub:
        settings = Settings(
            _env_file=None,
            redis_url=valkey_url,
            judge_model="stub/judge",
            judge_base_url=stub.base_url,
            run_lease_s=LEASE_S,
        )
        async with build_deps(settings) as wired:
            for _ in range(5):
                wired.deps.steadiness.seen()
                await asyncio.sleep(LEASE_S / 4)
            wired.deps.steadiness.seen()
            yield wired


@pytest.fixture
def deps(wired: Wired) -> Deps:
    return wired.deps


async def lost_run(deps: Deps, run_id: str, losses: int) -> RunKey:
    """Store a run whose holders died so often, the last of them just now."""
    new: NewRun = run_maker()(run_id)
    await deps.store.create(new)
    for _ in range(losses):
        assert await deps.store.claim(new.key, 0, alone=True)
    return new.key


async def run_of(deps: Deps, key: RunKey) -> Run:
    return Run.model_validate_json((await get_run(deps, key)).body)


def recoveries(wired: Wired, reason: str) -> float:
    return wired.registry.get_sample_value("assay_recoveries_total", {"reason": reason}) or 0.0


async def test_suspects_are_executed_one_at_a_time_and_waiting_is_no_loss(deps: Deps) -> None:
    keys = [await lost_run(deps, f"suspect-{number}", SUSPECT_LOSSES) for number in range(4)]
    async with asyncio.timeout(30):
        await asyncio.gather(*(execute_queued_run(deps, key) for key in keys))
    runs = [await run_of(deps, key) for key in keys]
    assert [[attempt.outcome for attempt in run.history] for run in runs] == [[LOST, LOST, COMPLETED]] * 4
    last = sorted((run.history[-1] for run in runs), key=lambda attempt: attempt.started_at)
    assert all(one.ended_at <= other.started_at for one, other in pairwise(last))


async def test_a_suspect_that_waits_for_its_turn_lends_its_place_and_holds_nothing(deps: Deps) -> None:
    key, place = await lost_run(deps, "suspect", SUSPECT_LOSSES), Place()
    async with deps.suspects:
        waiting = asyncio.create_task(execute_queued_run(deps, key, place))
        async with asyncio.timeout(10):
            await place.was_lent.wait()
        assert (await run_of(deps, key)).history[-1].outcome is None
        innocent = await lost_run(deps, "innocent", SUSPECT_LOSSES - 1)
        await execute_queued_run(deps, innocent)
        assert (await run_of(deps, innocent)).status is RunStatus.COMPLETED
        assert place.is_lent
    async with asyncio.timeout(10):
        await waiting
    assert not place.is_lent
    assert (await run_of(deps, key)).status is RunStatus.COMPLETED


async def test_the_third_loss_ends_a_run_which_is_kept_and_can_be_retried(wired: Wired, deps: Deps) -> None:
    key = await lost_run(deps, "poison", MAX_LOSSES)
    await execute_queued_run(deps, key)
    run = await run_of(deps, key)
    assert (run.status, run.error.code, run.attempts) == (RunStatus.FAILED, "internal", MAX_LOSSES)
    assert "POST .../retry runs it again" in run.error.detail
    assert [attempt.outcome for attempt in run.history] == [LOST] * MAX_LOSSES
    assert recoveries(wired, "attempts_spent") == 1
    assert recoveries(wired, "lease_expired") == 1
    assert wired.registry.get_sample_value("assay_judge_calls_total") is None
    await retry_run(deps, key)
    await execute_queued_run(deps, key)
    run = await run_of(deps, key)
    assert (run.status, run.attempts) == (RunStatus.COMPLETED, MAX_LOSSES + 1)
    assert [attempt.outcome for attempt in run.history] == [LOST] * MAX_LOSSES + [COMPLETED]


async def test_a_process_that_is_not_sure_of_itself_takes_nothing_over(deps: Deps) -> None:
    key = await lost_run(deps, "left-alone", 1)
    deps.steadiness.lost()
    assert await claim_run(deps, key) is None
    assert (await run_of(deps, key)).history[-1].outcome is None


async def test_a_caller_who_waits_does_not_get_a_suspect_executed_beside_others(deps: Deps) -> None:
    key = await lost_run(deps, "suspect", SUSPECT_LOSSES)
    with pytest.raises(RunSuspected):
        await claim_run(deps, key)
