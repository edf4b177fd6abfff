"""Whose job comes next, when there are more than the head of the line holds."""

from itertools import zip_longest

import pytest
import redis
from redis.asyncio import Redis
from rq import Queue

from app.adapters.redis_client import connect
from app.adapters.rq_queue import QUEUES, RqRunQueue, job_id
from app.domain.request import Priority
from app.ports import RunKey
from tests.integration.worker.running import NAMES
from worker.bookkeeping import Bookkeeping, Ending, Outcome, Taken

WINDOW = 64
LIST = "rq:queue:assay-normal"


def named(caller: str, number: int) -> RunKey:
    return RunKey("default", f"{caller}-{number:08d}")


async def fill(queue: RqRunQueue, caller: str, count: int, priority: Priority = Priority.NORMAL) -> None:
    for number in range(count):
        await queue.enqueue(named(caller, number), priority, 60, caller=caller)


def books(connection: Redis) -> Bookkeeping:
    return Bookkeeping(connection, "the-worker", NAMES)


async def take(bookkeeping: Bookkeeping, count: int) -> list[Taken]:
    """Take so many jobs one by one, as a worker whose places become free one by one does."""
    taken = []
    for _ in range(count):
        taken += await bookkeeping.take(1) or []
    return taken


def callers(taken: list[Taken]) -> str:
    return "".join(job.job_id[0] for job in taken)


@pytest.mark.anyio
async def test_one_callers_jobs_are_taken_in_the_order_they_came(queue: RqRunQueue, valkey_url: str) -> None:
    await fill(queue, "a", 200)
    async with connect(valkey_url) as connection:
        taken = await books(connection).take(64) or []
        while more := await books(connection).take(64):
            taken += more
    assert [job.job_id for job in taken] == [job_id(named("a", number)) for number in range(200)]


@pytest.mark.anyio
async def test_ten_thousand_of_one_caller_do_not_starve_ten_of_another(queue: RqRunQueue, valkey_url: str) -> None:
    await fill(queue, "a", 10_000)
    await fill(queue, "b", 10)
    async with connect(valkey_url) as connection:
        taken = callers(await take(books(connection), WINDOW + 20))
    assert taken.count("b") == 10
    assert (await queue.depth()).by_priority[Priority.NORMAL] == 10_010 - WINDOW - 20


@pytest.mark.anyio
async def test_callers_take_turns_however_many_they_are(queue: RqRunQueue, valkey_url: str) -> None:
    await fill(queue, "a", WINDOW + 30)
    for caller, count in (("b", 20), ("c", 5), ("d", 1)):
        await fill(queue, caller, count)
    async with connect(valkey_url) as connection:
        taken = callers(await take(books(connection), WINDOW + 56))
    turns = zip_longest("a" * 30, "b" * 20, "c" * 5, "d", fillvalue="")
    assert taken == "a" * WINDOW + "".join("".join(turn) for turn in turns)


@pytest.mark.anyio
async def test_urgent_jobs_overtake_whatever_waits(queue: RqRunQueue, valkey_url: str) -> None:
    await fill(queue, "a", 200, Priority.BULK)
    await fill(queue, "b", 100, Priority.HIGH)
    async with connect(valkey_url) as connection:
        taken = callers(await take(books(connection), 125))
    # Every fifth turn is offered to the queues below.
    assert taken.count("b") == 100


@pytest.mark.anyio
async def test_what_is_given_back_comes_first(queue: RqRunQueue, valkey_url: str) -> None:
    await fill(queue, "a", 200)
    async with connect(valkey_url) as connection:
        bookkeeping = books(connection)
        taken = await bookkeeping.take(10) or []
        await bookkeeping.end(Ending(job, Outcome.RETURNED, "", 0.0) for job in reversed(taken))
        again = await bookkeeping.take(10) or []
    assert [job.job_id for job in again] == [job.job_id for job in taken]


@pytest.mark.anyio
@pytest.mark.parametrize("place", [0, WINDOW - 1, WINDOW, 150])
async def test_a_job_is_removed_wherever_it_stands(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str, place: int
) -> None:
    await fill(queue, "a", 151)
    await queue.remove(named("a", place))
    assert (await queue.depth()).by_priority[Priority.NORMAL] == 150
    assert await queue.missing([named("a", number) for number in range(151)]) == [named("a", place)]
    for name in client.scan_iter():
        assert f"a-{place:08d}".encode() not in client.dump(name)


@pytest.mark.anyio
async def test_a_caller_whose_backlog_was_removed_has_no_turn_left(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    await fill(queue, "a", WINDOW + 2)
    await fill(queue, "b", 2)
    for number in range(2):
        await queue.remove(named("b", number))
    assert client.zrange("rq:callers:assay-normal", 0, -1) == [b"a"]
    await fill(queue, "b", 2)
    async with connect(valkey_url) as connection:
        taken = callers(await take(books(connection), WINDOW + 4))
    assert taken == "a" * WINDOW + "abab"


@pytest.mark.anyio
async def test_an_emptied_list_is_refilled(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    await fill(queue, "a", 200)
    Queue(QUEUES[Priority.NORMAL], connection=client).empty()
    assert (await queue.depth()).by_priority[Priority.NORMAL] == 136
    async with connect(valkey_url) as connection:
        bookkeeping = books(connection)
        await bookkeeping.recover()
        assert client.llen(LIST) == WINDOW
        client.delete(LIST)
        taken = await bookkeeping.take(1) or []
    assert [job.job_id for job in taken] == [job_id(named("a", 2 * WINDOW))]


@pytest.mark.anyio
@pytest.mark.parametrize("lost", ["rq:callers:assay-normal", "rq:backlog:assay-normal:a"])
async def test_a_backlog_whose_order_was_lost_is_still_taken(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str, lost: str
) -> None:
    await fill(queue, "a", 100)
    client.delete(lost)
    async with connect(valkey_url) as connection:
        taken = await take(books(connection), 101)
    assert [job.job_id for job in taken] == [job_id(named("a", number)) for number in range(100)]


@pytest.mark.anyio
async def test_a_long_queue_leaves_nothing_behind(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    await fill(queue, "a", 100)
    await fill(queue, "b", 10)
    async with connect(valkey_url) as connection:
        bookkeeping = books(connection)
        while taken := await bookkeeping.take(64):
            await bookkeeping.end(Ending(job, Outcome.DONE, "", 0.0) for job in taken)
    assert set(client.scan_iter()) == {b"rq:queues"}


@pytest.mark.anyio
async def test_a_job_in_the_backlog_keeps_its_one_place(queue: RqRunQueue, valkey_url: str) -> None:
    await fill(queue, "a", 100)
    await fill(queue, "a", 100)
    assert (await queue.depth()).by_priority[Priority.NORMAL] == 100
    async with connect(valkey_url) as connection:
        taken = await take(books(connection), 101)
    assert [job.job_id for job in taken] == [job_id(named("a", number)) for number in range(100)]


@pytest.mark.anyio
async def test_the_oldest_of_the_backlog_counts(queue: RqRunQueue, client: redis.Redis) -> None:
    await fill(queue, "a", 100)
    client.hset(f"rq:job:{job_id(named('a', WINDOW))}", "enqueued_at", "2026-01-01T00:00:00.000000Z")
    assert (await queue.depth()).oldest_s > 86_400


@pytest.mark.anyio
async def test_missing_are_those_without_a_job(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    await fill(queue, "a", 100)
    everyone = [named("a", number) for number in range(100)]
    async with connect(valkey_url) as connection:
        bookkeeping = books(connection)
        taken = await bookkeeping.take(3) or []
        assert await queue.missing([]) == []
        assert await queue.missing(everyone) == []
        await bookkeeping.end([Ending(taken[0], Outcome.DONE, "", 0.0), Ending(taken[1], Outcome.FAILED, "x", 0.0)])
        client.delete(f"rq:job:{job_id(everyone[5])}")
        client.lrem(LIST, 0, job_id(everyone[6]))
    stranger = RunKey("another", everyone[7].run_id)
    assert set(await queue.missing([*everyone, stranger])) == {everyone[0], everyone[5], everyone[6], stranger}
