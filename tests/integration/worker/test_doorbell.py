"""The bell tells that there is work, and takes none."""

import asyncio

import pytest
import redis

from app.adapters.redis_client import connect
from worker.doorbell import BLOCK_S, Doorbell

QUEUES = ["queue-a", "queue-b", "queue-c"]
# Less than a wait for a queue that stays empty: a bell that looks at one queue after the other is found out.
SOON_S = BLOCK_S / 2


@pytest.mark.anyio
async def test_it_rings_once_each_time_it_is_armed(valkey_url: str, client: redis.Redis) -> None:
    rings = 0
    has_rung = asyncio.Event()

    def ring() -> None:
        nonlocal rings
        rings += 1
        has_rung.set()

    async with connect(valkey_url, operation_s=BLOCK_S * 2) as connection:
        doorbell = Doorbell(connection, QUEUES, ring)
        watching = asyncio.create_task(doorbell.run())
        client.rpush("queue-b", "first", "second")
        await connection.ping()
        assert rings == 0
        for expected in (1, 2):
            has_rung.clear()
            doorbell.arm()
            await has_rung.wait()
            for _ in range(10):
                await connection.ping()
            assert rings == expected
        watching.cancel()
    assert client.lrange("queue-b", 0, -1) == [b"first", b"second"]


@pytest.mark.anyio
@pytest.mark.parametrize("queue", QUEUES)
async def test_it_rings_for_a_job_that_comes_later(valkey_url: str, client: redis.Redis, queue: str) -> None:
    has_rung = asyncio.Event()
    async with connect(valkey_url, operation_s=BLOCK_S * 2) as connection, asyncio.timeout(SOON_S):
        doorbell = Doorbell(connection, QUEUES, has_rung.set)
        watching = asyncio.create_task(doorbell.run())
        doorbell.arm()
        while client.info("clients")["blocked_clients"] < len(QUEUES):  # noqa: ASYNC110 - it is Redis that tells
            await asyncio.sleep(0.01)
        assert not has_rung.is_set()
        client.rpush(queue, "first")
        await has_rung.wait()
        watching.cancel()
    assert client.lrange(queue, 0, -1) == [b"first"]
