"""When Redis is frozen, full, restarted or absent: errors within seconds, nothing hangs, and it heals by itself."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.adapters.redis_client import connect, store_answers
from app.adapters.redis_runs import RedisRunStore
from app.domain.errors import StoreUnavailable
from app.ports import Claim, ListQuery, RunKey
from app.settings import SettingsError
from tests.integration.store.making import RUN_TTL_S, ended, run_maker

pytestmark = pytest.mark.anyio

NEW = run_maker()("the-run-of-outages")
CLAIM = Claim(key=NEW.key, token=1, run=NEW.run, request=NEW.request)
OPERATIONS: dict[str, Callable[[RedisRunStore], Awaitable[object]]] = {
    "create": lambda store: store.create(NEW),
    "get": lambda store: store.get(NEW.key),
    "get_request": lambda store: store.get_request(NEW.key),
    "claim": lambda store: store.claim(NEW.key, 60),
    "renew": lambda store: store.renew(CLAIM, 60),
    "checkpoint": lambda store: store.checkpoint(CLAIM, NEW.run, "analyze"),
    "finish": lambda store: store.finish(CLAIM, ended(NEW.run), cache_keys=[], keep_request=True),
    "release": lambda store: store.release(CLAIM),
    "cancel": lambda store: store.cancel(NEW.key, datetime.now(UTC)),
    "requeue": lambda store: store.requeue(NEW.key, NEW.run),
    "delete": lambda store: store.delete(NEW.key),
    "withdraw": lambda store: store.withdraw(NEW.key),
    "due": lambda store: store.due(10, 60),
    "may_sweep": lambda store: store.may_sweep(60),
    "list_page": lambda store: store.list_page(ListQuery("default")),
    "events": lambda store: store.events(NEW.key, None),
    "remember": lambda store: store.remember("default", "key", "f", ("the-run",)),
    "recall": lambda store: store.recall("default", "key"),
    "fence_key": lambda store: store.fence_key(),
    "ping": lambda store: store.ping(),
}


def store_at(client: Redis) -> RedisRunStore:
    return RedisRunStore(client, run_ttl_s=RUN_TTL_S, idempotency_ttl_s=RUN_TTL_S)


@pytest.fixture
async def own_client(own_valkey: EmbeddedValkey) -> AsyncIterator[Redis]:
    client = connect(own_valkey.url)
    yield client
    await client.aclose()


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_table_of_operations_is_complete():
    public = {name for name in vars(RedisRunStore) if not name.startswith("_")}
    assert set(OPERATIONS) == public


async def test_a_frozen_server_makes_every_operation_fail_in_time_and_heals(own_client: Redis):
    store = store_at(own_client)
    await store.create(NEW)
    with frozen((await own_client.info("server"))["process_id"]):
        async with asyncio.timeout(8):
            results = await asyncio.gather(*(run(store) for run in OPERATIONS.values()), return_exceptions=True)
    assert {name: type(result) for name, result in zip(OPERATIONS, results, strict=True)} == dict.fromkeys(
        OPERATIONS, StoreUnavailable
    )
    async with asyncio.timeout(10):
        await store.ping()
        assert await store_at(own_client).fence_key()


async def test_more_callers_than_connections_of_a_frozen_server_fail_in_time_too(own_valkey: EmbeddedValkey):
    client = connect(own_valkey.url, max_connections=2)
    store = store_at(client)
    with frozen((await client.info("server"))["process_id"]):
        async with asyncio.timeout(8):
            results = await asyncio.gather(*(store.get(NEW.key) for _ in range(20)), return_exceptions=True)
    assert {type(result) for result in results} == {StoreUnavailable}
    await client.aclose()


async def test_more_callers_than_connections_of_a_healthy_server_wait_their_turn(valkey_url: str):
    client = connect(valkey_url, max_connections=2)
    assert await asyncio.gather(*(store_at(client).get(NEW.key) for _ in range(200))) == [None] * 200
    await client.aclose()


@pytest.mark.parametrize("name", OPERATIONS)
async def test_without_a_server_every_operation_is_refused(tmp_path: Path, name: str):
    client = connect(f"unix://{tmp_path}/nothing.sock")
    with pytest.raises(StoreUnavailable):
        await OPERATIONS[name](store_at(client))
    await client.aclose()


async def test_a_full_server_is_unavailable_and_not_a_crash(own_client: Redis):
    store = store_at(own_client)
    await own_client.config_set("maxmemory", 1)
    with pytest.raises(StoreUnavailable):
        await store.create(NEW)
    with pytest.raises(StoreUnavailable):
        await store.ping()
    await own_client.config_set("maxmemory", 0)
    assert (await store.create(NEW))[0].new


async def test_a_replica_is_unavailable_until_it_is_promoted(own_client: Redis):
    """What a failover leaves where the URL still points."""
    store = store_at(own_client)
    await own_client.replicaof("127.0.0.1", "1")
    for refused in (store.create(NEW), store.ping()):
        with pytest.raises(StoreUnavailable):
            await refused
    await own_client.replicaof("NO", "ONE")
    await store.ping()


async def test_a_restarted_server_is_found_again_with_all_it_had(tmp_path: Path):
    server = start_valkey(tmp_path)
    client = connect(server.url)
    store = store_at(client)
    try:
        _, claim = await store.create(NEW, claim_lease_s=60)
        # Several connections, so that some of the pool still are the old ones afterwards.
        await asyncio.gather(*(store.get(NEW.key) for _ in range(20)))
        await asyncio.to_thread(server.stop)
        with pytest.raises(StoreUnavailable):
            await store.renew(claim, 60)
        server = await asyncio.to_thread(start_valkey, tmp_path)
        # Nobody has taught the new server any script.
        assert await store.renew(claim, 60)
        results = await asyncio.gather(*(store.get(NEW.key) for _ in range(20)))
        assert all(result is not None for result in results)
        assert await store.finish(claim, ended(claim.run), cache_keys=[], keep_request=True)
    finally:
        await client.aclose()
        await asyncio.to_thread(server.stop)


async def test_scripts_that_the_server_forgot_are_sent_again(client: Redis, store: RedisRunStore, new_run):
    new = new_run()
    await store.create(new)
    await client.script_flush()
    assert await store.claim(new.key, 60) is not None
    await client.script_flush()
    assert len((await store.list_page(ListQuery("default"))).bodies) == 1


async def test_a_cancelled_caller_is_cancelled_at_once(client: Redis):
    """redis-py's own time limits swallow cancellations; ours must not."""

    async def ask_for_ever() -> None:
        while True:
            async with store_answers():
                await client.incr("asked")

    for delay_s in (0, 0.0005, 0.001, 0.002) * 10:
        task = asyncio.create_task(ask_for_ever())
        await asyncio.sleep(delay_s)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=5)
        assert done
        assert task.cancelled()


async def test_answers_are_never_mixed_up_after_cancellations(client: Redis):
    async def ask(number: int) -> None:
        assert await client.echo(str(number)) == str(number).encode()

    for number in range(200):
        task = asyncio.create_task(ask(number))
        await asyncio.sleep(0 if number % 3 else 0.0003)
        task.cancel()
        await asyncio.wait({task})
        await ask(-number)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://localhost",
        "redis://:sesame@localhost:port",
        "redis://:sesame@localhost?nonsense=sesame",
        "redis://:sesame@localhost?db=sesame",
        "rediss://:sesame@localhost?ssl_cert_reqs=sesame",
    ],
)
def test_what_is_no_redis_url_is_refused_by_name_and_without_its_password(url: str):
    with pytest.raises(SettingsError) as refused:
        connect(url, variable="ASSAY_CACHE_REDIS_URL")
    assert str(refused.value).startswith("ASSAY_CACHE_REDIS_URL: ")
    assert "sesame" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("url", ["redis://user:sesame@127.0.0.1:1/0", "rediss://:sesame@127.0.0.1:1"])
async def test_a_password_shows_nowhere(url: str):
    client = connect(url)
    assert "sesame" not in repr(client) + repr(client.connection_pool)
    with pytest.raises(RedisError) as refused:
        await client.ping()
    assert "sesame" not in repr(refused.value) + str(refused.value)
    with pytest.raises(StoreUnavailable) as unavailable:
        await store_at(client).get(RunKey("default", "some-run"))
    assert "sesame" not in str(unavailable.value)
    await client.aclose()


async def test_options_of_the_url_do_not_undo_ours(valkey_url: str):
    client = connect(f"{valkey_url}?decode_responses=1&protocol=3&timeout=1000&db=3")
    await client.set("key", "value")
    assert await client.get("key") == b"value"
    plain = connect(valkey_url)
    assert await plain.get("key") is None
    await client.aclose()
    await plain.aclose()


async def test_passwords_and_users_are_sent(own_valkey: EmbeddedValkey, own_client: Redis):
    await own_client.execute_command("ACL", "SETUSER", "assay", "on", ">open sesame", "~*", "&*", "+@all")
    await own_client.config_set("requirepass", "other")
    for query, works in (("username=assay&password=open%20sesame", True), ("password=wrong", False)):
        client = connect(f"{own_valkey.url}?{query}")
        if works:
            await store_at(client).ping()
        else:
            with pytest.raises(StoreUnavailable):
                await store_at(client).ping()
        await client.aclose()
