"""Tenants' own scorers on a real server."""

import asyncio

import pytest
from redis.asyncio import Redis

from app.adapters import redis_definitions
from app.adapters.redis_client import connect
from app.adapters.redis_definitions import RedisDefinitionStore
from app.domain.errors import StoreUnavailable
from app.ports import Registration
from tests.integration.store.making import everything

pytestmark = pytest.mark.anyio


@pytest.fixture
def definitions(client: Redis) -> RedisDefinitionStore:
    return RedisDefinitionStore(client)


async def test_the_newest_version_is_the_scorer(definitions: RedisDefinitionStore) -> None:
    assert await definitions.add("a", "calm", "1", '{"first": "één"}') is Registration.NEW
    assert await definitions.add("a", "calm", "2", '{"second": 2}') is Registration.NEW
    assert await definitions.get("a", "calm") == '{"second": 2}'


async def test_a_version_never_changes(definitions: RedisDefinitionStore) -> None:
    await definitions.add("a", "calm", "1", "{}")
    await definitions.add("a", "calm", "2", '{"second": 2}')
    assert await definitions.add("a", "calm", "1", "{}") is Registration.SAME
    assert await definitions.add("a", "calm", "1", '{"other": 1}') is Registration.OTHER_BODY
    assert await definitions.get("a", "calm") == '{"second": 2}'


async def test_of_equal_registrations_at_once_one_is_new(definitions: RedisDefinitionStore) -> None:
    became = await asyncio.gather(*(definitions.add("a", "calm", "1", "{}") for _ in range(100)))
    assert sorted(became) == [Registration.NEW, *[Registration.SAME] * 99]


async def test_of_different_registrations_at_once_one_is_taken(definitions: RedisDefinitionStore) -> None:
    became = await asyncio.gather(*(definitions.add("a", "calm", "1", str(number)) for number in range(100)))
    assert sorted(became) == [Registration.NEW, *[Registration.OTHER_BODY] * 99]
    assert await definitions.get("a", "calm") == str(became.index(Registration.NEW))


async def test_tenants_have_scorers_of_their_own(definitions: RedisDefinitionStore) -> None:
    await definitions.add("a", "calm", "1", '{"of": "a"}')
    await definitions.add("b", "calm", "1", '{"of": "b"}')
    await definitions.add("a", "brisk", "1", '{"of": "a too"}')
    assert await definitions.all("a") == ['{"of": "a too"}', '{"of": "a"}']
    assert await definitions.all("b") == ['{"of": "b"}']
    assert await definitions.all("c") == []
    assert await definitions.get("c", "calm") is None


async def test_what_is_removed_leaves_nothing(definitions: RedisDefinitionStore, client: Redis) -> None:
    await definitions.add("a", "calm", "1", "{}")
    await definitions.add("a", "calm", "2", "{}")
    assert await definitions.remove("a", "calm")
    assert await everything(client) == ""
    assert not await definitions.remove("a", "calm")
    assert await definitions.add("a", "calm", "1", '{"begun": "anew"}') is Registration.NEW


async def test_only_so_many_scorers_and_versions_are_kept(
    definitions: RedisDefinitionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_definitions, "MAX_OWN_SCORERS", 2)
    monkeypatch.setattr(redis_definitions, "MAX_VERSIONS", 3)
    for version in "123":
        assert await definitions.add("a", "calm", version, "{}") is Registration.NEW
    assert await definitions.add("a", "calm", "4", "{}") is Registration.TOO_MANY_VERSIONS
    assert await definitions.add("a", "calm", "3", "{}") is Registration.SAME
    assert await definitions.add("a", "brisk", "1", "{}") is Registration.NEW
    assert await definitions.add("a", "loud", "1", "{}") is Registration.TOO_MANY_SCORERS
    assert await definitions.add("a", "brisk", "2", "{}") is Registration.NEW
    assert await definitions.add("b", "loud", "1", "{}") is Registration.NEW


@pytest.mark.parametrize("operation", ["add", "get", "all", "remove"])
async def test_a_server_that_is_away_is_told_of(operation: str) -> None:
    async with connect("redis://127.0.0.1:1") as client:
        definitions = RedisDefinitionStore(client)
        arguments = {"add": ("a", "calm", "1", "{}"), "all": ("a",)}.get(operation, ("a", "calm"))
        with pytest.raises(StoreUnavailable):
            await getattr(definitions, operation)(*arguments)


async def test_definitions_are_configuration_and_stay(definitions: RedisDefinitionStore, client: Redis) -> None:
    await definitions.add("a", "calm", "1", "{}")
    lives = {key: await client.ttl(key) async for key in client.scan_iter()}
    assert lives == {b"assay:{a}:scorers": -1, b"assay:{a}:scorer-versions:calm": -1}
