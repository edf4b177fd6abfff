"""A queue, a plain client to look with, and workers in this process or in their own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from app.adapters.redis_client import connect
from app.adapters.rq_queue import RqRunQueue
from tests.integration.worker.processes import WorkerProcesses


@pytest.fixture
def client(valkey_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey_url) as client:
        yield client


@pytest.fixture
async def queue(valkey_url: str) -> AsyncIterator[RqRunQueue]:
    async with connect(valkey_url) as client:
        yield RqRunQueue(client, limit=1000)


@pytest.fixture
def processes(valkey_url: str, client: redis.Redis, tmp_path: Path) -> Iterator[WorkerProcesses]:
    processes = WorkerProcesses(valkey_url, client, tmp_path / "workers.log")
    yield processes
    processes.end()
