"""Leases: who holds a job, who lost it, and what they may write."""

from collections.abc import AsyncIterator

import pytest
import redis
from redis.asyncio import Redis

from app.adapters.redis_client import connect
from app.adapters.rq_queue import MAX_RETRIES, RqRunQueue, job_id
from app.domain.request import Priority
from tests.integration.worker.running import NAMES, key
from worker.bookkeeping import LEASE_S, Bookkeeping, Ending, Outcome, Recovered, Taken

JOB = f"rq:job:{job_id(key('1'))}"
LINE = "rq:queue:assay-normal"
STARTED = "rq:wip:assay-normal"
IDENTITY = {"pid": 1, "hostname": "a-host", "birth": "2026-11-30T12:00:00.000000Z"}


@pytest.fixture
async def connection(valkey_url: str) -> AsyncIterator[Redis]:
    async with connect(valkey_url) as connection:
        yield connection


@pytest.fixture
async def ours(connection: Redis, queue: RqRunQueue) -> Bookkeeping:
    """Our books, with one job in line."""
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    return Bookkeeping(connection, "us", NAMES)


@pytest.fixture
def theirs(connection: Redis) -> Bookkeeping:
    return Bookkeeping(connection, "them", NAMES)


async def take_one(books: Bookkeeping) -> Taken:
    jobs = await books.take(10)
    assert jobs is not None
    (job,) = jobs
    return job


def expire_leases(client: redis.Redis) -> None:
    for member in client.zrange(STARTED, 0, -1):
        client.zadd(STARTED, {member: 1})


def ending(taken: Taken, outcome: Outcome) -> Ending:
    return Ending(taken, outcome, "internal" if outcome is Outcome.FAILED else "", 0.5)


@pytest.mark.anyio
async def test_a_lease_that_is_renewed_is_left_alone(ours: Bookkeeping, client: redis.Redis) -> None:
    taken = await take_one(ours)
    expire_leases(client)
    await ours.beat(IDENTITY, [taken])
    assert await ours.recover() == Recovered(0, 0)
    assert client.hget(JOB, "status") == b"started"
    (member,) = client.zrange(STARTED, 0, -1)
    assert LEASE_S - 2 <= client.ttl(f"rq:execution:{member.decode()}") <= LEASE_S


@pytest.mark.anyio
async def test_a_beat_does_not_bring_a_deleted_job_back(ours: Bookkeeping, client: redis.Redis) -> None:
    taken = await take_one(ours)
    client.delete(JOB)
    await ours.beat(IDENTITY, [taken])
    assert not client.exists(JOB)


@pytest.mark.anyio
async def test_the_job_of_a_dead_worker_waits_in_front_and_has_one_try_less(
    ours: Bookkeeping, theirs: Bookkeeping, queue: RqRunQueue, client: redis.Redis
) -> None:
    await take_one(ours)
    await queue.enqueue(key("2"), Priority.NORMAL, 60)
    assert await theirs.recover() == Recovered(0, 0)
    expire_leases(client)
    assert await theirs.recover() == Recovered(put_back=1, failed=0)
    assert await theirs.recover() == Recovered(0, 0)
    assert client.lrange(LINE, 0, -1) == [job_id(key("1")).encode(), job_id(key("2")).encode()]
    assert client.hget(JOB, "retries_left") == str(MAX_RETRIES - 1).encode()
    assert not client.exists("rq:worker:us:executions")


@pytest.mark.anyio
async def test_a_job_that_kills_its_workers_is_given_up(ours: Bookkeeping, client: redis.Redis) -> None:
    for _ in range(MAX_RETRIES + 1):
        await take_one(ours)
        expire_leases(client)
        recovered = await ours.recover()
    assert recovered == Recovered(put_back=0, failed=1)
    assert client.hget(JOB, "status") == b"failed"
    assert client.llen(LINE) == 0


@pytest.mark.anyio
@pytest.mark.parametrize("outcome", list(Outcome))
async def test_who_lost_the_lease_changes_nothing_any_more(
    ours: Bookkeeping, theirs: Bookkeeping, client: redis.Redis, outcome: Outcome
) -> None:
    lost = await take_one(ours)
    expire_leases(client)
    await theirs.recover()
    taken = await take_one(theirs)
    before = {name: client.dump(name) for name in client.scan_iter()}
    await ours.beat(IDENTITY, [lost])
    await ours.end([ending(lost, outcome)])
    registered = {b"rq:worker:us", b"rq:workers", *(f"rq:workers:{name}".encode() for name in NAMES)}
    assert {name: client.dump(name) for name in client.scan_iter() if name not in registered} == before
    await theirs.end([ending(taken, Outcome.DONE)])
    assert not client.exists(JOB)


@pytest.mark.anyio
@pytest.mark.parametrize("outcome", list(Outcome))
async def test_an_end_that_is_recorded_twice_counts_once(
    ours: Bookkeeping, client: redis.Redis, outcome: Outcome
) -> None:
    await ours.beat(IDENTITY, [])
    taken = await take_one(ours)
    await ours.end([ending(taken, outcome)])
    once = {name: client.dump(name) for name in client.scan_iter()}
    await ours.end([ending(taken, outcome)])
    assert {name: client.dump(name) for name in client.scan_iter()} == once
    assert client.zcard(STARTED) == 0


@pytest.mark.anyio
async def test_what_is_given_back_waits_in_front_and_keeps_its_tries(
    ours: Bookkeeping, queue: RqRunQueue, client: redis.Redis
) -> None:
    since = client.hget(JOB, "enqueued_at")
    taken = await take_one(ours)
    await queue.enqueue(key("2"), Priority.NORMAL, 60)
    await ours.end([ending(taken, Outcome.RETURNED)])
    assert client.lrange(LINE, 0, -1) == [job_id(key("1")).encode(), job_id(key("2")).encode()]
    assert client.hmget(JOB, "status", "retries_left", "enqueued_at") == [b"queued", str(MAX_RETRIES).encode(), since]
    assert client.ttl(JOB) > 0


@pytest.mark.anyio
async def test_a_worker_that_ran_out_in_an_outage_is_registered_again(
    ours: Bookkeeping, theirs: Bookkeeping, client: redis.Redis
) -> None:
    await ours.beat(IDENTITY, [])
    client.delete("rq:worker:us")
    await theirs.recover()
    assert client.smembers("rq:workers") == set()
    taken = await take_one(ours)
    await ours.end([ending(taken, Outcome.DONE)])
    # Nothing but a beat brings the hash back, for only a beat gives it an end.
    assert not client.exists("rq:worker:us")
    await ours.beat(IDENTITY, [])
    assert client.hget("rq:worker:us", "hostname") == b"a-host"
    assert 0 < client.ttl("rq:worker:us") <= LEASE_S
    assert client.smembers("rq:workers") == client.smembers("rq:workers:assay-bulk") == {b"rq:worker:us"}


@pytest.mark.anyio
async def test_failures_that_ran_out_leave_the_registry(ours: Bookkeeping, client: redis.Redis) -> None:
    client.zadd("rq:failed:assay-normal", {"an-old-job": 1, "a-new-job": 2**40})
    await ours.recover()
    assert client.zrange("rq:failed:assay-normal", 0, -1) == [b"a-new-job"]


@pytest.mark.anyio
async def test_nonsense_among_the_leases_is_cleared_away(ours: Bookkeeping, client: redis.Redis) -> None:
    client.zadd(STARTED, {"no-colon": 1, "unknown-job:execution": 1, "a:b:c": 1, b"\xff:\xfe": 1})
    assert await ours.recover() == Recovered(0, 0)
    assert client.zcard(STARTED) == 0


@pytest.mark.anyio
async def test_scripts_survive_a_server_that_forgot_them(ours: Bookkeeping, client: redis.Redis) -> None:
    client.script_flush()
    taken = await take_one(ours)
    client.script_flush()
    await ours.end([ending(taken, Outcome.DONE)])
    assert not client.exists(JOB)
