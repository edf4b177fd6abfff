"""What becomes of a job is told in codes, whatever its run did."""

import asyncio

import pytest
import redis
from structlog.testing import capture_logs

from app.domain.errors import AssayError, JudgeUnavailable, NotConfigured, StoreUnavailable
from tests.unit.worker.job_hashes import taken
from worker.bookkeeping import Outcome
from worker.jobs import Execute, executor
from worker.outcome import Verdict, run_job

CANARY = "a sentence that must not be told"


async def verdict_of(execute: Execute, timeout_s: int = 310) -> Verdict:
    executor.set(execute)
    return await run_job(taken(timeout_s=timeout_s), redis.Redis())


def raising(error: BaseException) -> Execute:
    async def execute(tenant: str, run_id: str) -> None:
        raise error

    return execute


async def well(tenant: str, run_id: str) -> None:
    await asyncio.sleep(0)


async def for_ever(tenant: str, run_id: str) -> None:
    await asyncio.Event().wait()


class Panic(BaseException):
    """What a library in Rust raises when it panics: no Exception."""


@pytest.mark.anyio
async def test_a_run_that_returns_is_done() -> None:
    assert await verdict_of(well) == Verdict(Outcome.DONE)


@pytest.mark.anyio
@pytest.mark.parametrize("error", [JudgeUnavailable(CANARY), NotConfigured(CANARY), StoreUnavailable(CANARY)])
async def test_our_errors_fail_with_their_code(error: AssayError) -> None:
    assert await verdict_of(raising(error)) == Verdict(Outcome.FAILED, error.code.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "error",
    [
        ValueError(CANARY),
        KeyError(CANARY),
        TimeoutError(CANARY),
        RecursionError(),
        asyncio.CancelledError(),
        Panic(CANARY),
    ],
)
async def test_bugs_fail_as_internal_and_are_logged(error: BaseException) -> None:
    with capture_logs() as events:
        assert await verdict_of(raising(error)) == Verdict(Outcome.FAILED, "internal")
    assert [(event["event"], event["code"], event["exc_info"]) for event in events] == [
        ("job_failed", "internal", error)
    ]


@pytest.mark.anyio
async def test_a_run_is_ended_at_its_timeout() -> None:
    assert await verdict_of(for_ever, timeout_s=1) == Verdict(Outcome.FAILED, "job_timeout")


@pytest.mark.anyio
async def test_a_cancellation_that_was_asked_for_is_no_failure() -> None:
    task = asyncio.create_task(verdict_of(for_ever))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.anyio
async def test_a_refused_job_runs_nothing_and_is_logged_without_what_is_in_it() -> None:
    executor.set(raising(AssertionError("it ran")))
    with capture_logs() as events:
        verdict = await run_job(taken(function=CANARY), redis.Redis())
    assert verdict == Verdict(Outcome.REFUSED, "job_refused")
    assert [event["event"] for event in events] == ["job_refused"]
    assert CANARY not in str(events)
