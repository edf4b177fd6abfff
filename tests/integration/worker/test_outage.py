"""Redis goes away and comes back while a worker has runs in hand."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.adapters.redis_client import connect
from app.adapters.rq_queue import RqRunQueue
from app.domain.request import Priority
from tests.integration.worker.running import Runs, key, working
from worker import worker


class Server:
    """A server of this test's own, which may stop and start again with what it held."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._valkey: EmbeddedValkey = start_valkey(folder)
        self.url = self._valkey.url

    async def stop(self) -> None:
        await asyncio.to_thread(self._valkey.stop)

    async def start(self) -> None:
        self._valkey = await asyncio.to_thread(start_valkey, self._folder)

    def end(self) -> None:
        self._valkey.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.end()


@pytest.fixture
async def queue(server: Server) -> AsyncIterator[RqRunQueue]:
    async with connect(server.url) as client:
        yield RqRunQueue(client, limit=10)


@pytest.mark.anyio
async def test_what_ends_during_an_outage_is_recorded_after_it(server: Server, queue: RqRunQueue) -> None:
    runs = Runs(held=True)
    for number in range(3):
        await queue.enqueue(key(str(number)), Priority.NORMAL, 60)
    async with working(server.url, runs.execute, concurrency=2) as working_one:
        await runs.until(begun=2)
        await server.stop()
        runs.release.set()
        await runs.until(ended=2)
        await server.start()
        # The third run was waiting in Redis, and is taken once the ends of the first two are recorded.
        await runs.until(ended=3)
    assert sorted(runs.begun) == [key(str(number)).run_id for number in range(3)]
    with redis.Redis.from_url(server.url) as client:
        assert set(client.scan_iter()) == {b"rq:queues", working_one.key.encode()}


@pytest.mark.anyio
async def test_an_idle_worker_takes_jobs_again_after_an_outage(server: Server, queue: RqRunQueue) -> None:
    runs = Runs()
    async with working(server.url, runs.execute):
        await queue.enqueue(key("1"), Priority.NORMAL, 60)
        await runs.until(ended=1)
        await server.stop()
        await server.start()
        await queue.enqueue(key("2"), Priority.BULK, 60)
        await runs.until(ended=2)


@pytest.mark.anyio
async def test_a_worker_stops_while_redis_is_away(
    server: Server, queue: RqRunQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GIVE_BACK_S", 0.2)
    runs = Runs(held=True)
    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    async with working(server.url, runs.execute, grace=0.1):
        await runs.until(begun=1)
        await server.stop()
    await server.start()
    with redis.Redis.from_url(server.url) as client:
        # Nobody could be told, so the lease will tell.
        assert client.zcard("rq:wip:assay-normal") == 1
