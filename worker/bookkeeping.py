"""RQ's bookkeeping of many jobs at once: one script a batch for beginnings, ends and heartbeats.

RQ's own worker needs 18 round trips a job. The scripts in `lua` leave the same keys, and in two points are safer: a job
is taken and begun in one step, so that none is lost in between, and a worker that lost its lease can't touch what
others made of the job since.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import uuid4

from redis.asyncio import Redis
from rq.defaults import RQ_KEY_PREFIX
from rq.utils import now, utcformat

from app.adapters.redis_scripts import script

LEASE_S = 15
# More would keep the server, and our loop, busy for too long at a stretch.
MAX_BATCH = 64

_REFUSED_DATA = zlib.compress(json.dumps(["refused", None, [], {}]).encode())
_ABANDONED = "abandoned"


class Taken(NamedTuple):
    """A job whose execution has begun: `began` as the job's hash has it, `since` (Unix time) as the execution's."""

    job_id: str
    queue: str
    execution_id: str
    began: str
    since: float
    fields: Mapping[bytes, bytes]


class Outcome(StrEnum):
    """How an execution ended; FAILED takes one of the job's retries, RETURNED does not."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    REFUSED = "refused"
    RETURNED = "returned"


class Ending(NamedTuple):
    """The end of an execution; `code` is all that RQ is told of a failure."""

    taken: Taken
    outcome: Outcome
    code: str
    seconds: float


class Recovered(NamedTuple):
    """Jobs of dead workers: how many wait again, and how many had no try left."""

    put_back: int
    failed: int


class Bookkeeping:
    """What one worker writes about itself and its jobs; raises redis errors, and each call bears repetition."""

    def __init__(self, client: Redis, worker: str, queues: Sequence[str]) -> None:
        self._worker = worker
        self._queues = list(queues)
        self._batch = f"{uuid4().hex}-"
        self._turn = 0
        self._take = script(client, "rq_executions", "rq_line", "take", package="worker")
        self._end = script(client, "rq_executions", "end", package="worker")
        self._beat = script(client, "rq_executions", "beat", package="worker")
        self._recover = script(client, "rq_executions", "rq_line", "recover", package="worker")

    async def take(self, wanted: int) -> list[Taken] | None:
        """Take up to `wanted` (at most MAX_BATCH) waiting jobs and begin them; None when workers are suspended."""
        header = self._header()
        found = await self._take(
            args=[*header, min(wanted, MAX_BATCH), self._turn, self._batch, *self._queues],
        )
        if found is None:
            return None
        self._turn += len(found) // 4
        began, since = header[2], header[3]
        return [
            Taken(job_id.decode(), queue.decode(), execution.decode(), began, since, _pairs(fields))
            for job_id, queue, execution, fields in zip(*[iter(found)] * 4, strict=True)
        ]

    async def end(self, endings: Iterable[Ending]) -> None:
        """Record ends: jobs that are done vanish, those that failed wait again while they have retries."""
        args: list[Any] = [*self._header(), _REFUSED_DATA]
        for taken, outcome, code, seconds in endings:
            args += [taken.job_id, taken.queue, taken.execution_id, taken.began, taken.since]
            args += [outcome.value, seconds, _packed(code) if code else ""]
        await self._end(args=args)

    async def beat(self, identity: Mapping[str, Any], running: Iterable[Taken]) -> None:
        """Show that this worker lives, with `identity` as its hash, and renew the leases of what it runs."""
        fields = [part for item in identity.items() for part in item]
        args: list[Any] = [*self._header(), len(self._queues), *self._queues, len(fields), *fields]
        for taken in running:
            args += [taken.job_id, taken.queue, taken.execution_id, taken.since]
        await self._beat(args=args)

    async def recover(self) -> Recovered:
        """Give jobs whose lease ended to whoever takes them next, and clear away dead workers."""
        return Recovered(*await self._recover(args=[*self._header(), _packed(_ABANDONED), *self._queues]))

    def _header(self) -> list[Any]:
        moment = now()
        return [RQ_KEY_PREFIX, self._worker, utcformat(moment), moment.timestamp(), LEASE_S]


def _pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _packed(code: str) -> str:
    return base64.b64encode(zlib.compress(code.encode())).decode()
