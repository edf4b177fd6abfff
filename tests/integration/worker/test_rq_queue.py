"""The queue's side of the transport."""

import asyncio
import json
import zlib

import pytest
import redis
from rq.utils import now, utcformat

from app.adapters.redis_client import connect
from app.adapters.rq_queue import FAILURE_TTL_S, MAX_RETRIES, QUEUES, RqRunQueue, job_id
from app.domain.errors import CapacityReduced, StoreUnavailable
from app.domain.request import Priority
from app.ports import RunKey
from tests.integration.worker.running import Runs, burst, key, working

NOTHING_LEFT = {b"rq:queues"}


def fields(client: redis.Redis, run: RunKey) -> dict[bytes, bytes]:
    return client.hgetall(f"rq:job:{job_id(run)}")


@pytest.mark.anyio
@pytest.mark.parametrize("priority", list(Priority))
async def test_a_job_carries_ids_and_limits_only(queue: RqRunQueue, client: redis.Redis, priority: Priority) -> None:
    await queue.enqueue(key("1"), priority, 299.2)
    stored = fields(client, key("1"))
    assert json.loads(zlib.decompress(stored[b"data"])) == [
        "worker.jobs.execute",
        None,
        ["default", "run-00000001"],
        {},
    ]
    limits = {name: int(stored[name.encode()]) for name in ("timeout", "result_ttl", "failure_ttl", "retries_left")}
    assert limits == {"timeout": 300, "result_ttl": 0, "failure_ttl": FAILURE_TTL_S, "retries_left": MAX_RETRIES}
    assert stored[b"description"] == b"run"
    assert 0 < client.ttl(f"rq:job:{job_id(key('1'))}") <= 300 + 86_400
    assert client.lrange(f"rq:queue:assay-{priority.value}", 0, -1) == [job_id(key("1")).encode()]


@pytest.mark.anyio
async def test_a_run_that_waits_keeps_its_one_place(queue: RqRunQueue, client: redis.Redis) -> None:
    for name in ("1", "2", "1", "1"):
        await queue.enqueue(key(name), Priority.NORMAL, 60)
    await asyncio.gather(*(queue.enqueue(key("3"), Priority.NORMAL, 60) for _ in range(10)))
    waiting = client.lrange("rq:queue:assay-normal", 0, -1)
    assert waiting == [job_id(key(name)).encode() for name in ("1", "2", "3")]


@pytest.mark.anyio
async def test_a_job_that_fell_out_of_line_is_put_back(queue: RqRunQueue, client: redis.Redis) -> None:
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    # A worker of another kind may take an id and die before it notes so.
    client.delete("rq:queue:assay-normal")
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    assert client.lrange("rq:queue:assay-normal", 0, -1) == [job_id(key("1")).encode()]


@pytest.mark.anyio
async def test_tenants_do_not_share_a_job(queue: RqRunQueue) -> None:
    for tenant in ("default", "another", "Default", "a"):
        await queue.enqueue(RunKey(tenant, "run-00000001"), Priority.NORMAL, 60)
    assert (await queue.depth()).by_priority[Priority.NORMAL] == 4


@pytest.mark.anyio
async def test_a_run_is_enqueued_again_after_its_job_ended(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    async def fail(tenant: str, run_id: str) -> None:
        raise ValueError

    runs = Runs()
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    await burst(valkey_url, runs.execute)
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    await burst(valkey_url, fail)
    assert client.zcard("rq:failed:assay-normal") == 1
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    assert fields(client, key("1"))[b"retries_left"] == str(MAX_RETRIES).encode()
    assert client.zcard("rq:failed:assay-normal") == 0
    await burst(valkey_url, runs.execute)
    assert runs.ended == ["run-00000001"] * 2
    assert not fields(client, key("1"))


@pytest.mark.anyio
async def test_a_run_enqueued_while_its_job_still_runs_gets_another(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Runs(held=True)
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    async with working(valkey_url, runs.execute, concurrency=1):
        await runs.until(begun=1)
        await queue.enqueue(key("1"), Priority.NORMAL, 60)
        runs.release.set()
        await runs.until(ended=2)
    assert not fields(client, key("1"))
    assert client.zcard("rq:wip:assay-normal") == 0


@pytest.mark.anyio
async def test_a_full_queue_has_no_room(valkey_url: str, client: redis.Redis) -> None:
    async with connect(valkey_url) as connection:
        queue = RqRunQueue(connection, limit=2)
        await queue.enqueue(key("1"), Priority.HIGH, 60)
        await queue.check_room()
        await queue.enqueue(key("2"), Priority.BULK, 60)
        before = set(client.scan_iter())
        with pytest.raises(CapacityReduced):
            await queue.check_room()
        assert set(client.scan_iter()) == before
        with pytest.raises(CapacityReduced):
            await queue.enqueue(key("3"), Priority.NORMAL, 60, if_room=True)
        assert set(client.scan_iter()) == before
        # What waits already keeps its place, and for what was accepted before there is one.
        await queue.enqueue(key("1"), Priority.HIGH, 60, if_room=True)
        await queue.enqueue(key("1"), Priority.HIGH, 60)
        await queue.enqueue(key("3"), Priority.NORMAL, 60)
        assert sum((await queue.depth()).by_priority.values()) == 3


@pytest.mark.anyio
async def test_depth_counts_by_priority_and_tells_the_oldest_wait(queue: RqRunQueue, client: redis.Redis) -> None:
    assert await queue.depth() == ({Priority.HIGH: 0, Priority.NORMAL: 0, Priority.BULK: 0}, 0.0)
    for number in range(3):
        await queue.enqueue(key(str(number)), Priority.NORMAL, 60)
    await queue.enqueue(key("9"), Priority.BULK, 60)
    client.hset(f"rq:job:{job_id(key('9'))}", "enqueued_at", "2026-01-01T00:00:00.000000Z")
    depth = await queue.depth()
    assert depth.by_priority == {Priority.HIGH: 0, Priority.NORMAL: 3, Priority.BULK: 1}
    assert depth.oldest_s > 86_400


@pytest.mark.anyio
@pytest.mark.parametrize("enqueued_at", ["yesterday", "", None])
async def test_a_head_of_unknown_age_counts_as_new(
    queue: RqRunQueue, client: redis.Redis, enqueued_at: str | None
) -> None:
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    if enqueued_at is None:
        client.delete(f"rq:job:{job_id(key('1'))}")
    else:
        client.hset(f"rq:job:{job_id(key('1'))}", "enqueued_at", enqueued_at)
    assert (await queue.depth()).oldest_s == 0.0


@pytest.mark.anyio
async def test_looking_changes_nothing(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    # An execution whose lease ended: RQ's own counts would clean it up on the way.
    client.zadd("rq:wip:assay-normal", {"some-job:some-execution": 1})
    before = {name: client.dump(name) for name in client.scan_iter()}
    await queue.depth()
    await queue.check_room()
    await queue.workers()
    assert {name: client.dump(name) for name in client.scan_iter()} == before


@pytest.mark.anyio
async def test_live_workers_are_counted(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    client.sadd("rq:workers:assay-normal", "rq:worker:dead")
    runs = Runs(held=True)
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    async with working(valkey_url, runs.execute), working(valkey_url, runs.execute):
        await runs.until(begun=1)
        assert await queue.workers() == 2
        age = await queue.last_beat_s()
        assert age is not None
        assert 0 <= age < 15
        runs.release.set()
    assert await queue.workers() == 0
    assert await queue.last_beat_s() is None


@pytest.mark.anyio
async def test_the_freshest_beat_counts(queue: RqRunQueue, client: redis.Redis) -> None:
    for name, beat in (("a", "2026-01-01T00:00:00.000000Z"), ("b", utcformat(now())), ("c", "")):
        client.sadd("rq:workers:assay-normal", f"rq:worker:{name}")
        client.hset(f"rq:worker:{name}", "last_heartbeat", beat)
    age = await queue.last_beat_s()
    assert age is not None
    assert age < 3_600


@pytest.mark.anyio
@pytest.mark.parametrize("moment", ["waiting", "running", "failed", "done", "unknown"])
async def test_removing_leaves_no_trace(queue: RqRunQueue, client: redis.Redis, valkey_url: str, moment: str) -> None:
    runs = Runs(held=moment == "running")

    async def execute(tenant: str, run_id: str) -> None:
        await runs.execute(tenant, run_id)
        if moment == "failed":
            raise ValueError

    if moment != "unknown":
        await queue.enqueue(key("1"), Priority.NORMAL, 60)
    if moment in {"failed", "done"}:
        await burst(valkey_url, execute)
    if moment == "running":
        async with working(valkey_url, execute):
            await runs.until(begun=1)
            await queue.remove(key("1"))
            assert not [name for name in client.scan_iter() if b"run-00000001" in name]
            runs.release.set()
    else:
        await queue.remove(key("1"))
    kept = {name for name in client.scan_iter() if not name.startswith(b"rq:worker:")}
    assert kept <= NOTHING_LEFT
    assert not any(b"run-00000001" in client.dump(name) for name in kept)


@pytest.mark.anyio
async def test_an_absent_redis_is_told_as_such() -> None:
    queue = RqRunQueue(connect("unix:///nowhere/valkey.sock"), limit=10)
    for call in (
        queue.enqueue(key("1"), Priority.NORMAL, 60),
        queue.check_room(),
        queue.remove(key("1")),
        queue.depth(),
        queue.workers(),
    ):
        with pytest.raises(StoreUnavailable):
            await call


def test_queues_are_drained_in_the_order_of_priority() -> None:
    assert list(QUEUES.values()) == ["assay-high", "assay-normal", "assay-bulk"]
