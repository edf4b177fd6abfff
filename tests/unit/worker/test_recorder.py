"""Ends are kept until Redis has them."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import cast

import pytest
from redis.exceptions import BusyLoadingError, OutOfMemoryError, ReadOnlyError
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.unit.worker.job_hashes import taken
from worker.bookkeeping import MAX_BATCH, Bookkeeping, Ending, Outcome
from worker.recorder import Recorder


class Ledger:
    """A bookkeeping that fails as told before it writes."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.batches: list[list[Ending]] = []

    async def end(self, endings: Iterable[Ending]) -> None:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.batches.append(list(endings))


async def recorded(ledger: Ledger, endings: Sequence[Ending]) -> list[Ending]:
    """Put the endings at once, and return what was told as recorded when all is."""
    recorder = Recorder(cast(Bookkeeping, ledger))
    told: list[Ending] = []
    is_complete = asyncio.Event()

    def on_recorded(batch: Sequence[Ending]) -> None:
        told.extend(batch)
        if len(told) == len(endings):
            is_complete.set()

    running = asyncio.create_task(recorder.run(on_recorded))
    for ending in endings:
        recorder.put(ending)
    await is_complete.wait()
    running.cancel()
    return told


def endings(count: int) -> list[Ending]:
    return [Ending(taken(str(number)), Outcome.DONE, "", 0.1) for number in range(count)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "failure",
    [
        RedisConnectionError(),
        BusyLoadingError(),
        ReadOnlyError(),
        OutOfMemoryError(),
        TimeoutError(),
        ConnectionResetError(),
    ],
)
async def test_an_end_is_written_when_redis_is_back(failure: BaseException) -> None:
    ledger = Ledger(failure, failure)
    ending = endings(1)
    assert await recorded(ledger, ending) == ending
    assert ledger.batches == [ending]


@pytest.mark.anyio
async def test_what_ends_together_is_written_together_in_bounded_batches() -> None:
    ledger = Ledger()
    many = endings(2 * MAX_BATCH + 3)
    assert await recorded(ledger, many) == many
    assert [len(batch) for batch in ledger.batches] == [MAX_BATCH, MAX_BATCH, 3]


@pytest.mark.anyio
async def test_a_bug_in_the_bookkeeping_is_not_retried_for_ever() -> None:
    recorder = Recorder(cast(Bookkeeping, Ledger(ZeroDivisionError())))
    recorder.put(endings(1)[0])
    with pytest.raises(ZeroDivisionError):
        await recorder.run(lambda _: None)
