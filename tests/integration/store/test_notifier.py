"""Wake-ups: every change wakes those who watch that run, over one connection, also after Redis was away."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.adapters import redis_notifier, redis_pubsub
from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.adapters.redis_client import connect
from app.adapters.redis_notifier import RedisNotifier
from app.adapters.redis_runs import RedisRunStore
from app.domain.run import RunStatus
from app.ports import RunKey
from tests.integration.store.making import RUN_TTL_S, ended

pytestmark = pytest.mark.anyio

# Long enough that a wake-up and not the end of the wait ends it.
WAKE_S = 20.0


@pytest.fixture
async def notifier(valkey_url: str) -> AsyncIterator[RedisNotifier]:
    notifier = RedisNotifier(connect(valkey_url))
    await notifier.start()
    yield notifier
    await notifier.aclose()


async def test_every_change_of_a_run_wakes_its_watch(notifier: RedisNotifier, store: RedisRunStore, new_run):
    new = new_run()
    async with notifier.watch(new.key, steps=True) as watch:

        async def woken_by(change):
            result = await change
            assert result
            assert await watch.changed(WAKE_S)
            return result

        await woken_by(store.create(new))
        claim = await woken_by(store.claim(new.key, 60))
        await woken_by(store.checkpoint(claim, claim.run, "preprocess"))
        await woken_by(store.release(claim))
        claim = await woken_by(store.claim(new.key, 60))
        await woken_by(store.finish(claim, ended(claim.run, RunStatus.FAILED), cache_keys=["key"], keep_request=True))
        await woken_by(store.requeue(new.key, new.run))
        await woken_by(store.cancel(new.key, datetime.now(UTC)))
        await woken_by(store.delete(new.key))


async def test_steps_wake_only_those_who_watch_steps(notifier: RedisNotifier, store: RedisRunStore, new_run):
    new = new_run()
    async with notifier.watch(new.key) as status, notifier.watch(new.key, steps=True) as steps:
        _, claim = await store.create(new, claim_lease_s=60)
        assert await status.changed(WAKE_S)
        assert await steps.changed(WAKE_S)
        await store.checkpoint(claim, claim.run, "preprocess")
        assert await steps.changed(WAKE_S)
        assert not await status.changed(0)
        await store.checkpoint(claim, claim.run, None)
        await store.finish(claim, ended(claim.run), cache_keys=[], keep_request=True)
        assert await steps.changed(WAKE_S)
        assert await status.changed(WAKE_S)


async def test_only_those_who_watch_that_run_of_that_tenant_wake(
    notifier: RedisNotifier, store: RedisRunStore, new_run
):
    new = new_run("same-run")
    async with (
        notifier.watch(new.key) as first,
        notifier.watch(new.key) as second,
        notifier.watch(RunKey("another", "same-run")) as foreign,
        notifier.watch(RunKey("default", "other-run")) as other,
    ):
        await store.create(new)
        assert await first.changed(WAKE_S)
        assert await second.changed(WAKE_S)
        assert not await foreign.changed(0.05)
        assert not await other.changed(0)


async def test_a_change_before_the_wait_is_not_missed_and_many_wake_once(
    notifier: RedisNotifier, store: RedisRunStore, new_run
):
    new = new_run()
    async with notifier.watch(new.key) as watch, notifier.watch(RunKey("default", "sentinel")) as last:
        await store.create(new)
        await store.cancel(new.key, datetime.now(UTC))
        await store.create(new_run("sentinel"))
        assert await last.changed(WAKE_S)
        assert await watch.changed(0)
        assert not await watch.changed(0.01)


async def test_any_number_of_watches_shares_one_connection(notifier: RedisNotifier, client: Redis, new_run):
    async def pubsub_clients() -> int:
        return len(await client.client_list(_type="pubsub"))

    before = await pubsub_clients()
    async with asyncio.timeout(WAKE_S), asyncio.TaskGroup() as group:
        entered = asyncio.Semaphore(0)
        woken = asyncio.Event()

        async def watch(number: int) -> None:
            async with notifier.watch(RunKey("default", f"run-{number}")):
                entered.release()
                await woken.wait()

        for number in range(100):
            group.create_task(watch(number))
        for _ in range(100):
            await entered.acquire()
        assert await pubsub_clients() == before == 1
        woken.set()
    assert not notifier._watches


async def test_a_lost_connection_is_made_again_and_wakes_all_watchers(
    notifier: RedisNotifier, client: Redis, store: RedisRunStore, new_run
):
    new = new_run()
    async with notifier.watch(new.key) as watch:
        await client.client_kill_filter(_type="pubsub")
        assert await watch.changed(WAKE_S)
        await store.create(new)
        assert await watch.changed(WAKE_S)


async def test_after_a_restart_watchers_wake_and_changes_are_heard_again(tmp_path: Path, new_run):
    server = start_valkey(tmp_path)
    notifier, client = RedisNotifier(connect(server.url)), connect(server.url)
    store = RedisRunStore(client, run_ttl_s=RUN_TTL_S, idempotency_ttl_s=RUN_TTL_S)
    await notifier.start()
    new = new_run()
    try:
        async with notifier.watch(new.key) as watch:
            await asyncio.to_thread(server.stop)
            assert not await watch.changed(0.05)
            server = await asyncio.to_thread(start_valkey, tmp_path)
            assert await watch.changed(WAKE_S)
            await store.create(new)
            assert await watch.changed(WAKE_S)
    finally:
        await notifier.aclose()
        await client.aclose()
        await asyncio.to_thread(server.stop)


async def test_a_server_that_froze_is_given_up_and_found_again(
    own_valkey: EmbeddedValkey, new_run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(redis_pubsub, "SILENCE_S", 0.2)
    monkeypatch.setattr(redis_pubsub, "RECONNECT_S", 0.2)
    notifier, client = RedisNotifier(connect(own_valkey.url)), connect(own_valkey.url)
    await notifier.start()
    pid = (await client.info("server"))["process_id"]
    async with notifier.watch(new_run().key) as watch:
        os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(WAKE_S):
                while notifier._subscribed.is_set():  # noqa: ASYNC110 - nobody is told of a loss
                    await asyncio.sleep(0.01)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert await watch.changed(WAKE_S)
    await notifier.aclose()
    await client.aclose()


async def test_without_a_server_it_starts_and_watches_time_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(redis_notifier, "START_S", 0.1)
    notifier = RedisNotifier(connect(f"unix://{tmp_path}/nothing.sock"))
    await notifier.start()
    async with notifier.watch(RunKey("default", "some-run")) as watch:
        assert not await watch.changed(0.01)
    await notifier.aclose()


async def test_a_silent_connection_that_answers_when_asked_is_kept(
    valkey_url: str, client: Redis, store: RedisRunStore, new_run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(redis_pubsub, "SILENCE_S", 0.02)
    notifier = RedisNotifier(connect(valkey_url))
    await notifier.start()
    [before] = await client.client_list(_type="pubsub")
    async with notifier.watch(RunKey("default", "some-run")) as watch:
        assert not await watch.changed(0.3)
    [after] = await client.client_list(_type="pubsub")
    assert after["id"] == before["id"]
    await notifier.aclose()
