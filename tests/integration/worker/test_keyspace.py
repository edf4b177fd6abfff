"""Our worker leaves in Redis what RQ's own worker of the pinned version leaves, at every moment of a job.

RQ's worker runs the same jobs on the same server; a new RQ that keeps its books otherwise fails here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis
from rq import Queue, SimpleWorker
from rq.command import send_stop_job_command
from rq.job import Retry
from rq.registry import StartedJobRegistry
from rq.serializers import JSONSerializer

from app.adapters.redis_client import connect
from app.adapters.rq_queue import FAILURE_TTL_S, MAX_RETRIES, QUEUES, WAIT_TTL_S, job_id
from app.domain.request import Priority
from tests.integration.worker.keyspace import keyspace
from tests.integration.worker.running import NAMES, enqueue_now, key, make_worker
from worker.bookkeeping import Bookkeeping
from worker.jobs import AllowedJob, executor

WORKER = "the-worker"
Keyspaces = list[dict[str, tuple[Any, ...]]]


class Told(Exception):
    """A run that is told to fail."""


def stock_worker(client: redis.Redis) -> SimpleWorker:
    return SimpleWorker(NAMES, name=WORKER, connection=client, job_class=AllowedJob, serializer=JSONSerializer)


def seen_by(run: Callable[[], None], client: redis.Redis, seen: Keyspaces) -> Callable[[str, str], Any]:
    async def execute(tenant: str, run_id: str) -> None:
        seen.append(keyspace(client))
        run()

    return execute


def by_rq(url: str, client: redis.Redis, run: Callable[[], None]) -> Keyspaces:
    """Return what RQ's worker leaves: during each attempt, and at the end."""
    client.flushall()
    enqueue_now(url, "1")
    seen: Keyspaces = []
    token = executor.set(seen_by(run, client, seen))
    stock_worker(client).work(burst=True)
    executor.reset(token)
    return [*seen, keyspace(client)]


def by_us(url: str, client: redis.Redis, run: Callable[[], None]) -> Keyspaces:
    """Return what our worker leaves, likewise."""
    client.flushall()
    enqueue_now(url, "1")
    seen: Keyspaces = []
    make_worker(url, seen_by(run, client, seen), name=WORKER).work(burst=True)
    return [*seen, keyspace(client)]


def fail() -> None:
    raise Told


@pytest.mark.parametrize("priority", list(Priority))
def test_enqueueing(valkey_url: str, client: redis.Redis, priority: Priority) -> None:
    Queue(QUEUES[priority], connection=client, serializer=JSONSerializer).enqueue(
        "worker.jobs.execute",
        args=["default", key("1").run_id],
        job_id=job_id(key("1")),
        description="run",
        job_timeout=60,
        ttl=60 + WAIT_TTL_S,
        result_ttl=0,
        failure_ttl=FAILURE_TTL_S,
        retry=Retry(max=MAX_RETRIES, enqueue_at_front=True),
    )
    by_queue = keyspace(client)
    client.flushall()
    enqueue_now(valkey_url, "1", priority=priority)
    assert keyspace(client) == by_queue


def test_success(valkey_url: str, client: redis.Redis) -> None:
    assert by_us(valkey_url, client, lambda: None) == by_rq(valkey_url, client, lambda: None)


def test_failure_after_every_retry(valkey_url: str, client: redis.Redis) -> None:
    ours, theirs = by_us(valkey_url, client, fail), by_rq(valkey_url, client, fail)
    assert len(ours) == MAX_RETRIES + 2
    assert ours == theirs


@pytest.mark.parametrize("retries_left", [1, 0])
def test_abandonment(valkey_url: str, client: redis.Redis, retries_left: int) -> None:
    """A worker died: its job waits again, or failed when it has no retry left."""
    abandon(valkey_url, client, retries_left)
    StartedJobRegistry("assay-normal", client, job_class=AllowedJob, serializer=JSONSerializer).cleanup()
    theirs = keyspace(client)
    abandon(valkey_url, client, retries_left)
    asyncio.run(with_books(valkey_url, Bookkeeping.recover))
    assert keyspace(client) == theirs


def abandon(url: str, client: redis.Redis, retries_left: int) -> None:
    """Begin a job and let the worker be dead for longer than its lease."""
    client.flushall()
    enqueue_now(url, "1")
    client.hset(f"rq:job:{job_id(key('1'))}", "retries_left", retries_left)
    asyncio.run(with_books(url, lambda books: books.take(1)))
    (member,) = client.zrange("rq:wip:assay-normal", 0, -1)
    client.zadd("rq:wip:assay-normal", {member: 1})
    # Redis does this by itself when their time is over.
    client.delete(f"rq:execution:{member.decode()}", f"rq:executions:{job_id(key('1'))}")
    client.delete(f"rq:worker:{WORKER}:executions")


async def with_books(url: str, act: Callable[[Bookkeeping], Awaitable[Any]]) -> None:
    async with connect(url) as connection:
        await act(Bookkeeping(connection, WORKER, NAMES))


def test_stopping(valkey_url: str, client: redis.Redis) -> None:
    client.flushall()
    enqueue_now(valkey_url, "1")
    stock = stock_worker(client)

    async def as_if_stopped(tenant: str, run_id: str) -> None:
        # RQ's SimpleWorker can't stop a job in the middle; this is what it would remember, had it.
        stock._stopped_job_id = job_id(key("1"))
        raise Told

    token = executor.set(as_if_stopped)
    stock.work(burst=True)
    executor.reset(token)
    theirs = keyspace(client)

    async def stop(tenant: str, run_id: str) -> None:
        send_stop_job_command(client, job_id(key("1")), serializer=JSONSerializer)
        await asyncio.Event().wait()

    client.flushall()
    enqueue_now(valkey_url, "1")
    make_worker(valkey_url, stop, name=WORKER).work(burst=True)
    assert keyspace(client) == theirs
