"""The queue: run ids travel to the workers as RQ jobs, in three queues by priority.

A job carries ids only; the run stays in the store. Its id is made of the run's id and a digest of the tenant, so that a
run has one job at a time and DELETE finds all of it. What lies in Redis is what rq 3.0 itself writes, so that `rq info`
and other RQ tools read it; of a long queue they see its head, which is filled from the callers' backlogs in turn.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, cast

import redis
from redis.asyncio import Redis
from rq.defaults import RQ_KEY_PREFIX
from rq.job import Job, JobStatus, Retry
from rq.serializers import JSONSerializer
from rq.utils import now, utcparse

from app.adapters.redis_client import store_answers
from app.adapters.redis_scripts import script
from app.domain.errors import CapacityReduced
from app.domain.request import Priority
from app.ports import QueueDepth, RunKey

JOB_FUNCTION = "worker.jobs.execute"
JOB_DESCRIPTION = "run"
FULL = "The queue is full; try again later"
# Highest first, which is the order of Priority.
QUEUES: Mapping[Priority, str] = MappingProxyType({priority: f"assay-{priority.value}" for priority in Priority})
# Bounds the transport only: the run store counts how often a run was lost, and ends it long before.
MAX_RETRIES = 10
FAILURE_TTL_S = 86_400
# How long a job waits for a worker beyond its own time, so that a late worker can still tell the run's end.
WAIT_TTL_S = 86_400


def job_id(key: RunKey) -> str:
    """Return the id of the run's job: letters, digits, `-` and `_`, as RQ asks for."""
    return f"{key.run_id}-{hashlib.sha256(key.tenant.encode()).hexdigest()[:16]}"


class RqRunQueue:
    """RunQueue over RQ's own keys, one round trip a call; `limit` is how many jobs may wait in all queues together."""

    def __init__(self, client: Redis, *, limit: int) -> None:
        self._client = client
        self._limit = limit
        self._enqueue = script(client, "rq_names", "rq_line", "rq_traces", "rq_enqueue")
        self._remove = script(client, "rq_names", "rq_line", "rq_traces", "rq_remove")
        self._depth = script(client, "rq_names", "rq_line", "rq_depth")
        self._missing = script(client, "rq_names", "rq_line", "rq_missing")
        self._workers = script(client, "rq_names", "rq_workers")

    async def enqueue(
        self, key: RunKey, priority: Priority, timeout_s: float, *, caller: str = "", if_room: bool = False
    ) -> None:
        """Put a run in line; a run that waits already keeps its place, one whose job ended or runs gets a new job.

        Beyond the next 64, runs of one priority are taken from their callers in turn. `timeout_s` bounds one execution.
        Raises StoreUnavailable when Redis is away, CapacityReduced with `if_room` when the queue is full.
        """
        job = self._job(key, QUEUES[priority], math.ceil(timeout_s))
        stored = job.to_dict() | ({"caller": caller} if caller else {})
        fields = [part for item in stored.items() for part in item]
        header: list[Any] = [RQ_KEY_PREFIX, job.id, job.origin, job.ttl or 0, caller, self._limit if if_room else ""]
        async with store_answers():
            answer = await self._enqueue(args=[*header, len(QUEUES), *QUEUES.values(), *fields])
        if answer == b"full":
            raise CapacityReduced(FULL)

    async def check_room(self) -> None:
        """Raise CapacityReduced when the queue holds as many jobs as it may."""
        depth = await self.depth()
        if sum(depth.by_priority.values()) >= self._limit:
            raise CapacityReduced(FULL)

    async def remove(self, key: RunKey) -> None:
        """Take a run out of line and delete every trace of its job, running or ended."""
        async with store_answers():
            await self._remove(args=[RQ_KEY_PREFIX, job_id(key), *QUEUES.values()])

    async def depth(self) -> QueueDepth:
        """Return what waits and the age of the oldest head of a line; reads only, whatever the length."""
        async with store_answers():
            answer = await self._depth(args=[RQ_KEY_PREFIX, *QUEUES.values()])
        waiting = dict(zip(QUEUES, answer[::3], strict=True))
        return QueueDepth(waiting, max(_age_s(since) for since in (*answer[1::3], *answer[2::3])))

    async def missing(self, keys: Sequence[RunKey]) -> list[RunKey]:
        """Return those runs that have no job waiting or being executed."""
        if not keys:
            return []
        by_id = {job_id(key): key for key in keys}
        async with store_answers():
            found = await self._missing(args=[RQ_KEY_PREFIX, len(QUEUES), *QUEUES.values(), *by_id])
        return [by_id[id_.decode()] for id_ in found]

    async def workers(self) -> int:
        """Return how many workers listen and are alive."""
        alive, _ = await self._alive()
        return alive

    async def last_beat_s(self) -> float | None:
        """Return how long ago a worker last showed itself, on the workers' clocks; None when none is alive."""
        alive, last = await self._alive()
        return _age_s(last) if alive else None

    async def _alive(self) -> tuple[int, bytes]:
        async with store_answers():
            alive, last = await self._workers(args=[RQ_KEY_PREFIX, QUEUES[Priority.NORMAL]])
        return int(alive), last

    def _job(self, key: RunKey, queue: str, timeout_s: int) -> Job:
        options: dict[str, Any] = {
            "id": job_id(key),
            "args": [key.tenant, key.run_id],
            "origin": queue,
            "status": JobStatus.QUEUED,
            "description": JOB_DESCRIPTION,
            "serializer": JSONSerializer,
            "timeout": timeout_s,
            "ttl": timeout_s + WAIT_TTL_S,
            "result_ttl": 0,
            "failure_ttl": FAILURE_TTL_S,
            "retry": Retry(max=MAX_RETRIES, enqueue_at_front=True),
        }
        # RQ only keeps the connection here; it is never asked to use it.
        job = Job.create(JOB_FUNCTION, connection=cast(redis.Redis, self._client), **options)
        job.enqueued_at = now()
        return job


def _age_s(since: bytes) -> float:
    if not since:
        return 0.0
    try:
        enqueued_at = utcparse(since.decode())
    except ValueError:
        return 0.0
    return max((datetime.now(UTC) - enqueued_at).total_seconds(), 0.0)
