"""Workers on the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.adapters.redis_client import connect
from app.adapters.rq_queue import QUEUES, RqRunQueue
from app.domain.request import Priority
from app.ports import RunKey
from worker.jobs import Execute
from worker.worker import AsyncWorker

NAMES = list(QUEUES.values())


def key(run_id: str) -> RunKey:
    return RunKey("default", f"run-{run_id:0>8}")


def enqueue_now(url: str, *names: str, priority: Priority = Priority.NORMAL) -> list[str]:
    """Put runs in line, for tests without an event loop; returns their ids."""

    async def put() -> None:
        async with connect(url) as client:
            queue = RqRunQueue(client, limit=1000)
            for name in names:
                await queue.enqueue(key(name), priority, 60)

    asyncio.run(put())
    return [key(name).run_id for name in names]


class Runs:
    """What the workers of a test execute: notes what begins and ends; `held` runs wait until `release`."""

    def __init__(self, *, held: bool = False) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.release = asyncio.Event()
        if not held:
            self.release.set()
        self._changed = asyncio.Condition()

    async def execute(self, tenant: str, run_id: str) -> None:
        await self._note(self.begun, run_id)
        await self.release.wait()
        await self._note(self.ended, run_id)

    async def _note(self, notes: list[str], run_id: str) -> None:
        async with self._changed:
            notes.append(run_id)
            self._changed.notify_all()

    async def until(self, *, begun: int = 0, ended: int = 0) -> None:
        """Wait until so many runs have begun and ended."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self.begun) >= begun and len(self.ended) >= ended)


def make_worker(url: str, execute: Execute, **options: Any) -> AsyncWorker:
    return AsyncWorker(NAMES, url=url, execute=execute, **options)


async def burst(url: str, execute: Execute, **options: Any) -> AsyncWorker:
    """Work until the queues are empty."""
    worker = await asyncio.to_thread(make_worker, url, execute, **options)
    await worker.run(burst=True)
    return worker


@asynccontextmanager
async def working(url: str, execute: Execute, **options: Any) -> AsyncIterator[AsyncWorker]:
    """Work within the block, from when the worker is registered, and stop warmly at its end."""
    worker = await asyncio.to_thread(make_worker, url, execute, **{"grace": 5.0, **options})
    running = asyncio.create_task(worker.run())
    try:
        while not await asyncio.to_thread(worker.connection.exists, worker.key):  # noqa: ASYNC110 - Redis tells
            await asyncio.sleep(0.01)
        yield worker
    finally:
        worker.stop()
        await running
