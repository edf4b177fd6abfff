"""Fixtures for the adapters that live on Redis, all on a real server."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.adapters.redis_client import connect
from app.adapters.redis_runs import RedisRunStore
from app.ports import NewRun
from tests.integration.store.making import RUN_TTL_S, run_maker


@pytest.fixture
async def client(valkey_url: str) -> AsyncIterator[Redis]:
    client = connect(valkey_url)
    yield client
    await client.aclose()


@pytest.fixture
def store(client: Redis) -> RedisRunStore:
    return RedisRunStore(client, run_ttl_s=RUN_TTL_S, idempotency_ttl_s=RUN_TTL_S)


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    """A server that the test may stop, freeze and restart; its data directory is tmp_path."""
    server = start_valkey(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def new_run() -> Callable[..., NewRun]:
    return run_maker()


async def _eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)


@pytest.fixture
def eventually() -> Callable[..., Awaitable[None]]:
    """Wait for something that another process does, of which no event tells."""
    return _eventually


@pytest.fixture
def eventually_sync() -> Callable[..., None]:
    def wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.02)

    return wait
