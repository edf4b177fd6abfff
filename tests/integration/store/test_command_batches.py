"""Commands of one tick go out together, and what is wrong with one of them is its own."""

import asyncio

import pytest
from redis.asyncio import Redis

from app.adapters.redis_client import connect

pytestmark = pytest.mark.anyio


async def test_a_command_that_can_not_be_packed_fails_alone(client: Redis):
    first, nonsense, last = await asyncio.gather(
        client.set("first", 1), client.set("nonsense", object()), client.set("last", 1), return_exceptions=True
    )
    assert first is last is True
    assert isinstance(nonsense, TypeError)
    assert await client.exists("first", "nonsense", "last") == 2


async def test_a_command_that_redis_refuses_fails_alone(client: Redis):
    first, refused, last = await asyncio.gather(
        client.set("first", 1), client.lpush("first", 1), client.set("last", 1), return_exceptions=True
    )
    assert first is last is True
    assert "WRONGTYPE" in str(refused)


async def test_what_nobody_expects_is_raised_where_an_answer_is_awaited(
    valkey_url: str, monkeypatch: pytest.MonkeyPatch
):
    client = connect(valkey_url, operation_s=20)

    async def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(client.connection_pool, "get_connection", broken)
    async with asyncio.timeout(5):
        answers = await asyncio.gather(client.get("first"), client.get("last"), return_exceptions=True)
    assert [type(answer) for answer in answers] == [ZeroDivisionError] * 2
    await client.aclose()
