"""Lists of runs: order, filters, cursors that neither repeat nor skip, bounded work."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from app.adapters import redis_runs
from app.adapters.redis_runs import RedisRunStore
from app.domain.errors import InvalidRequest
from app.domain.run import Run, RunStatus
from app.ports import ListQuery, NewRun
from tests.integration.store.making import RUN_TTL_S, ended

pytestmark = pytest.mark.anyio

NewRuns = Callable[..., NewRun]
EVERYTHING = ListQuery("default")


def ids(bodies: list[bytes]) -> list[str]:
    return [Run.model_validate_json(body).run_id for body in bodies]


async def pages(store: RedisRunStore, query: ListQuery) -> list[list[str]]:
    found = []
    while True:
        page = await store.list_page(query)
        found.append(ids(page.bodies))
        if page.next_cursor is None:
            return found
        query = query._replace(cursor=page.next_cursor)


async def listed(store: RedisRunStore, query: ListQuery) -> list[str]:
    return [run_id for page in await pages(store, query) for run_id in page]


async def test_newest_first_in_full_pages(store: RedisRunStore, new_run: NewRuns):
    made = [new_run() for _ in range(7)]
    for new in made:
        await store.create(new)
    newest_first = [new.key.run_id for new in reversed(made)]
    found = await pages(store, EVERYTHING._replace(limit=3))
    assert found == [newest_first[:3], newest_first[3:6], newest_first[6:]]
    assert (await store.list_page(EVERYTHING)).bodies[-1] == made[0].run.model_dump_json(by_alias=True).encode()


async def test_the_last_full_page_says_that_it_is_the_last(store: RedisRunStore, new_run: NewRuns):
    for _ in range(4):
        await store.create(new_run())
    assert [len(page) for page in await pages(store, EVERYTHING._replace(limit=2))] == [2, 2]


async def test_runs_of_one_instant_are_listed_once_each(store: RedisRunStore, new_run: NewRuns):
    now = datetime.now(UTC)
    made = [
        new_run(run_id, created_at=now) for run_id in ("Zebra-run", "_lower-run", "apple-run", "Apple-run", "-run-run")
    ]
    for new in made:
        await store.create(new)
    found = await listed(store, EVERYTHING._replace(limit=1))
    assert found == sorted((new.key.run_id for new in made), reverse=True)


async def test_paging_goes_on_undisturbed_while_runs_come_change_and_go(store: RedisRunStore, new_run: NewRuns):
    made = [new_run() for _ in range(6)]
    for new in made:
        await store.create(new)
    first = await store.list_page(EVERYTHING._replace(limit=2))
    await store.create(new_run())
    await store.create(new_run(created_at=made[3].run.created_at - timedelta(microseconds=1)))
    await store.cancel(made[2].key, datetime.now(UTC))
    # The very run that the cursor points to is gone.
    await store.delete(made[4].key)
    rest = await listed(store, EVERYTHING._replace(limit=2, cursor=first.next_cursor))
    assert ids(first.bodies) == [made[5].key.run_id, made[4].key.run_id]
    assert rest == [made[3].key.run_id, "run-000007", *(made[n].key.run_id for n in (2, 1, 0))]


async def test_filters_ask_for_all_of_them(store: RedisRunStore, new_run: NewRuns):
    made = [
        new_run(scorer_id=scorer, metadata={"team": team, "round": number})
        for number in range(2)
        for scorer in ("bias", "toxicity")
        for team in ("north", "south")
    ]
    for new in made:
        await store.create(new)
    await store.cancel(made[0].key, datetime.now(UTC))

    async def found(**filters: object) -> set[int]:
        names = await listed(store, EVERYTHING._replace(limit=1, **filters))
        return {number for number, new in enumerate(made) if new.key.run_id in names}

    assert await found(scorer_id="bias") == {0, 1, 4, 5}
    assert await found(metadata=(("team", "north"),)) == {0, 2, 4, 6}
    assert await found(status=RunStatus.CANCELLED) == {0}
    assert await found(status=RunStatus.QUEUED, scorer_id="bias", metadata=(("team", "north"), ("round", "1"))) == {4}
    assert await found(scorer_id="bias", metadata=(("team", "north"), ("team", "south"))) == set()
    assert await found(scorer_id="none") == set()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (7, "7"),
        (0.5, "0.5"),
        (2.0, "2.0"),
    ],
)
async def test_metadata_is_compared_as_its_text(store: RedisRunStore, new_run: NewRuns, value: object, text: str):
    new = new_run(metadata={"key": value})
    await store.create(new)
    await store.create(new_run(metadata={"key": "other"}))
    await store.create(new_run(metadata={"other": value}))
    assert await listed(store, EVERYTHING._replace(metadata=(("key", text),))) == [new.key.run_id]


async def test_a_run_is_listed_under_its_present_status_only(store: RedisRunStore, new_run: NewRuns):
    new = new_run()

    async def statuses() -> list[RunStatus]:
        return [s for s in RunStatus if await listed(store, EVERYTHING._replace(status=s))]

    await store.create(new)
    assert await statuses() == [RunStatus.QUEUED]
    claim = await store.claim(new.key, 60)
    assert await statuses() == [RunStatus.RUNNING]
    await store.release(claim)
    assert await statuses() == [RunStatus.QUEUED]
    claim = await store.claim(new.key, 60)
    await store.finish(claim, ended(claim.run, RunStatus.FAILED), cache_keys=[], keep_request=True)
    assert await statuses() == [RunStatus.FAILED]
    await store.requeue(new.key, new.run)
    assert await statuses() == [RunStatus.QUEUED]
    await store.cancel(new.key, datetime.now(UTC))
    assert await statuses() == [RunStatus.CANCELLED]
    await store.delete(new.key)
    assert await statuses() == []


async def test_times_bound_the_list_to_the_microsecond_and_exclude_themselves(store: RedisRunStore, new_run: NewRuns):
    instant = datetime.now(UTC).replace(microsecond=500_001)
    made = [new_run(created_at=instant + timedelta(microseconds=n)) for n in (-1, 0, 1)]
    for new in made:
        await store.create(new)
    before, at, after = (new.key.run_id for new in made)
    assert await listed(store, EVERYTHING._replace(created_after=instant)) == [after]
    assert await listed(store, EVERYTHING._replace(created_before=instant)) == [before]
    bounds = {"created_after": made[0].run.created_at, "created_before": made[2].run.created_at}
    assert await listed(store, EVERYTHING._replace(**bounds)) == [at]
    page = await store.list_page(EVERYTHING._replace(limit=1))
    rest = EVERYTHING._replace(cursor=page.next_cursor, created_before=made[1].run.created_at)
    assert await listed(store, rest) == [before]


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31)])
async def test_any_time_can_bound_a_list(store: RedisRunStore, new_run: NewRuns, moment: datetime):
    await store.create(new_run())
    before = await listed(store, EVERYTHING._replace(created_before=moment))
    after = await listed(store, EVERYTHING._replace(created_after=moment))
    assert len(before) + len(after) == 1
    assert bool(before) is (moment.year > 2000)


async def changed_cursors(store: RedisRunStore) -> list[str]:
    cursor = (await store.list_page(EVERYTHING._replace(limit=1))).next_cursor
    raw = base64.urlsafe_b64decode(cursor + "==")
    forged = base64.urlsafe_b64encode(raw[:-1] + bytes([raw[-1] ^ 1])).decode().rstrip("=")
    return [cursor[:-2], cursor[1:], cursor + "A", cursor.swapcase(), forged]


async def test_a_cursor_that_was_changed_is_refused(store: RedisRunStore, new_run: NewRuns):
    for _ in range(2):
        await store.create(new_run())
    for cursor in ["", "x", "=", "a b", "é", "\x00", "A" * 5000, "AAAA", *await changed_cursors(store)]:
        with pytest.raises(InvalidRequest) as refused:
            await store.list_page(EVERYTHING._replace(cursor=cursor))
        assert [fault.pointer for fault in refused.value.faults] == ["#/cursor"]
        assert not cursor or len(cursor) < 5 or cursor not in repr(refused.value.faults)


async def test_expired_runs_are_not_listed(store: RedisRunStore, client: Redis, new_run: NewRuns):
    made = [new_run(metadata={"team": "north"}) for _ in range(4)]
    for new in made:
        await store.create(new)
    for new in made[1:3]:
        await client.delete(f"assay:{{default}}:run:{new.key.run_id}")
    query = EVERYTHING._replace(limit=1, metadata=(("team", "north"),))
    assert await listed(store, query) == [made[3].key.run_id, made[0].key.run_id]


async def test_indexes_forget_what_is_older_than_a_run_lives(store: RedisRunStore, client: Redis, new_run: NewRuns):
    now = datetime.now(UTC)
    old = new_run(metadata={"team": "north"}, created_at=now - timedelta(seconds=RUN_TTL_S + 1))
    young = new_run(metadata={"team": "north"}, created_at=now)
    for new in (old, young):
        await store.create(new)
    async for key in client.scan_iter(match="*:runs*"):
        assert await client.zcard(key) == 1, key


async def test_the_work_for_a_page_is_bounded_and_paging_still_finds_all(
    store: RedisRunStore, new_run: NewRuns, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(redis_runs, "LIST_BUDGET", 200)
    made = [new_run(scorer_id=("bias", "toxicity")[n % 2], metadata={"n": n // 300}) for n in range(600)]
    # Two large sets with few common members: the walk finds next to nothing.
    for new in made:
        await store.create(new)
    for new in made[:300]:
        await store.cancel(new.key, datetime.now(UTC))
    query = EVERYTHING._replace(limit=3, status=RunStatus.CANCELLED, metadata=(("n", "1"),))
    found = await pages(store, query)
    assert found == [[]] * len(found)
    assert len(found) > 1
    query = EVERYTHING._replace(limit=100, status=RunStatus.CANCELLED, scorer_id="bias")
    assert await listed(store, query) == [new.key.run_id for new in reversed(made[:300:2])]


async def test_listing_takes_one_command_however_many_runs_there_are(
    store: RedisRunStore, client: Redis, new_run: NewRuns
):
    for n in range(300):
        await store.create(new_run(metadata={"half": n % 2}))
    await store.list_page(EVERYTHING)  # a server that is new to the script is told it once
    await client.config_resetstat()
    await store.list_page(EVERYTHING._replace(limit=10, scorer_id="bias", metadata=(("half", "0"),)))
    calls = {name: found["calls"] for name, found in (await client.info("commandstats")).items()}
    assert calls.pop("cmdstat_evalsha") == 1
    assert calls["cmdstat_hget"] == 11
    assert sum(calls.values()) < 20
