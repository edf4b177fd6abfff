"""Our worker beside RQ's own Worker (a fork a job) and SimpleWorker: the same job, the same server, one run.

    python -m bench.worker [--jobs 6000]

Each row puts jobs in line and works them off, once with a job that does nothing and once with one that waits 50 ms, as
for a judge. CPU is that of this process and its children for an empty job, the server's is apart.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import redis
import structlog
from rq import Queue, SimpleWorker, Worker
from rq.job import Retry
from rq.serializers import JSONSerializer

from app.adapters.embedded_valkey import start_valkey
from app.adapters.redis_client import connect
from app.adapters.rq_queue import FAILURE_TTL_S, JOB_FUNCTION, MAX_RETRIES, QUEUES, RqRunQueue, job_id
from app.domain.request import Priority
from app.ports import RunKey
from worker.jobs import AllowedJob, executor
from worker.worker import AsyncWorker

NAMES = list(QUEUES.values())
NORMAL = QUEUES[Priority.NORMAL]
SLOW_S = 0.05
LIMIT_S = 60


async def noop(_tenant: str, _run_id: str) -> None:
    """A run that takes no time."""


async def slow(_tenant: str, _run_id: str) -> None:
    """A run that waits, as for a judge."""
    await asyncio.sleep(SLOW_S)


def key(number: int) -> RunKey:
    """Return the key of the n-th run."""
    return RunKey("default", f"run-{number:08d}")


@dataclass(frozen=True, slots=True)
class Contender:
    """A kind of worker: how its jobs are put in line, how they are worked off, and how many are worth measuring."""

    name: str
    fill: Callable[[str, int], None]
    work: Callable[[str, Callable[..., Any]], object]
    empty_jobs: int
    slow_jobs: int


class Drained(NamedTuple):
    """Seconds of putting jobs in line, of working them off, and CPU seconds of the latter here and at the server."""

    jobs: int
    fill_s: float
    work_s: float
    cpu_s: float
    server_s: float


def by_rq(kind: type[Worker]) -> Contender:
    """One of RQ's own workers, with RQ's own queue: one job after the other."""

    def fill(url: str, jobs: int) -> None:
        with redis.Redis.from_url(url) as client:
            queue = Queue(NORMAL, connection=client, serializer=JSONSerializer)
            for number in range(jobs):
                queue.enqueue(
                    JOB_FUNCTION,
                    args=["default", key(number).run_id],
                    job_id=job_id(key(number)),
                    description="run",
                    job_timeout=LIMIT_S,
                    result_ttl=0,
                    failure_ttl=FAILURE_TTL_S,
                    retry=Retry(max=MAX_RETRIES, enqueue_at_front=True),
                )

    def work(url: str, execute: Callable[..., Any]) -> None:
        executor.set(execute)
        with redis.Redis.from_url(url) as client:
            worker = kind(NAMES, connection=client, job_class=AllowedJob, serializer=JSONSerializer)
            worker.work(burst=True, logging_level="WARNING")

    forks = kind is Worker
    return Contender(f"RQ {kind.__name__}", fill, work, 150 if forks else 500, 40)


def by_us(concurrency: int, jobs: int) -> Contender:
    """Our worker, and as many callers at once as it executes jobs."""

    async def put(url: str, count: int) -> None:
        numbers = iter(range(count))
        async with connect(url) as client:
            queue = RqRunQueue(client, limit=count + 1)

            async def caller(name: str) -> None:
                for number in numbers:
                    await queue.enqueue(key(number), Priority.NORMAL, LIMIT_S, caller=name)

            await asyncio.gather(*(caller(f"caller-{number}") for number in range(concurrency)))

    def fill(url: str, count: int) -> None:
        asyncio.run(put(url, count))

    def work(url: str, execute: Callable[..., Any]) -> None:
        AsyncWorker(NAMES, url=url, execute=execute, concurrency=concurrency).work(burst=True)

    return Contender(f"ours, {concurrency} at once", fill, work, jobs, 40 if concurrency == 1 else jobs)


def drain(contender: Contender, client: redis.Redis, url: str, execute: Callable[..., Any], jobs: int) -> Drained:
    """Put jobs in line and let the contender work them off."""
    client.flushall()
    began = time.perf_counter()
    contender.fill(url, jobs)
    filled, cpu, server = time.perf_counter(), cpu_s(), server_cpu_s(client)
    contender.work(url, execute)
    ended = time.perf_counter()
    left = len(list(client.scan_iter("rq:job:*")))
    if left:
        raise RuntimeError(f"{contender.name} left {left} jobs")
    return Drained(jobs, filled - began, ended - filled, cpu_s() - cpu, server_cpu_s(client) - server)


def cpu_s() -> float:
    """Return what this process and its ended children have used so far."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def server_cpu_s(client: redis.Redis) -> float:
    """Return what the server has used so far."""
    used = client.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


@contextmanager
def server() -> Iterator[str]:
    """A Valkey for the time of the block, as `assay up` starts it."""
    with tempfile.TemporaryDirectory() as folder:
        valkey = start_valkey(Path(folder))
        try:
            yield valkey.url
        finally:
            valkey.stop()


def row(contender: Contender, client: redis.Redis, url: str) -> str:
    """Measure a contender and return its line of the table."""
    empty = drain(contender, client, url, noop, contender.empty_jobs)
    waits = drain(contender, client, url, slow, contender.slow_jobs)
    return (
        f"{contender.name:20} {empty.jobs / empty.fill_s:11.0f} {empty.jobs / empty.work_s:11.0f} "
        f"{waits.jobs / waits.work_s:11.0f} {empty.cpu_s / empty.jobs * 1000:9.3f} "
        f"{empty.server_s / empty.jobs * 1000:9.3f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=6000, help="jobs of the largest rows")
    jobs = parser.parse_args().jobs
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))
    print(f"{'':20} {'jobs a second':^35} {'CPU ms a job':^19}")
    print(f"{'worker':20} {'enqueued':>11} {'empty':>11} {'50 ms':>11} {'worker':>9} {'server':>9}")
    contenders = [by_rq(Worker), by_rq(SimpleWorker), by_us(1, jobs // 4), by_us(64, jobs), by_us(256, jobs)]
    with server() as url, redis.Redis.from_url(url) as client:
        for contender in contenders:
            print(row(contender, client, url), flush=True)


if __name__ == "__main__":
    main()
