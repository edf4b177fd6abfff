"""Jobs a second and CPU a job of our worker, beside RQ's own SimpleWorker on the same jobs and the same server.

    python -m bench.worker [--jobs 3000]

Each row is a worker of its own on an embedded Valkey, in this process: CPU is this process's, the server's is apart.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import redis
import structlog
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from app.adapters.embedded_valkey import start_valkey
from app.adapters.redis_client import connect
from app.adapters.rq_queue import QUEUES, RqRunQueue
from app.domain.request import Priority
from app.ports import RunKey
from worker.jobs import AllowedJob, executor
from worker.worker import AsyncWorker

NAMES = list(QUEUES.values())
SLOW_S = 0.05
CONCURRENCIES = (1, 64, 256)


class Row(NamedTuple):
    """One measurement: seconds on the clock, CPU seconds of the worker and of the server, for so many jobs."""

    name: str
    jobs: int
    seconds: float
    cpu_s: float
    server_s: float

    def __str__(self) -> str:
        return (
            f"{self.name:32} {self.jobs:6} {self.jobs / self.seconds:9.0f} "
            f"{self.cpu_s / self.jobs * 1000:9.3f} {self.server_s / self.jobs * 1000:9.3f}"
        )


async def noop(_tenant: str, _run_id: str) -> None:
    """A run that takes no time."""


async def slow(_tenant: str, _run_id: str) -> None:
    """A run that waits, as for a judge."""
    await asyncio.sleep(SLOW_S)


async def fill(url: str, jobs: int) -> None:
    """Put that many runs in line."""
    async with connect(url) as client:
        queue = RqRunQueue(client, limit=jobs + 1)
        for number in range(jobs):
            await queue.enqueue(RunKey("default", f"run-{number:08d}"), Priority.NORMAL, 60)


def measure(name: str, client: redis.Redis, url: str, jobs: int, work: Callable[[], object]) -> Row:
    """Let a worker drain the queue."""
    client.flushall()
    asyncio.run(fill(url, jobs))
    server = server_cpu_s(client)
    seconds, cpu = time.perf_counter(), time.process_time()
    work()
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - seconds
    left = client.llen(f"rq:queue:{QUEUES[Priority.NORMAL]}")
    if left:
        raise RuntimeError(f"{name} left {left} jobs")
    return Row(name, jobs, seconds, cpu, server_cpu_s(client) - server)


def server_cpu_s(client: redis.Redis) -> float:
    """Return what the server has used so far."""
    used = client.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def drain_with_rq(client: redis.Redis) -> None:
    """Let RQ's own worker execute our jobs."""
    worker = SimpleWorker(NAMES, connection=client, job_class=AllowedJob, serializer=JSONSerializer)
    worker.work(burst=True, logging_level="WARNING")


@contextmanager
def server():
    """A Valkey for the time of the block, as `assay up` starts it."""
    with tempfile.TemporaryDirectory() as folder:
        valkey = start_valkey(Path(folder))
        try:
            yield valkey.url
        finally:
            valkey.stop()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=3000, help="jobs of the largest rows")
    jobs = parser.parse_args().jobs
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))
    print(f"{'worker':32} {'jobs':>6} {'jobs/s':>9} {'CPU ms':>9} {'server ms':>9}")
    with server() as url, redis.Redis.from_url(url) as client:
        for label, execute in (("no-op", noop), ("50 ms", slow)):
            few = min(jobs, 500 if execute is noop else 40)
            executor.set(execute)
            print(measure(f"RQ SimpleWorker, {label}", client, url, few, lambda: drain_with_rq(client)))
            for concurrency in CONCURRENCIES:
                worker = AsyncWorker(NAMES, url=url, execute=execute, concurrency=concurrency)
                count = few if concurrency == 1 else jobs
                name = f"AsyncWorker, {concurrency} at once, {label}"
                print(measure(name, client, url, count, lambda worker=worker: worker.work(burst=True)))


if __name__ == "__main__":
    main()
