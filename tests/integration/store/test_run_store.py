"""The run store: arrows, claims, leases, events, lifetimes and the promise of DELETE."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from redis.asyncio import Redis

from app.adapters.redis_runs import RedisRunStore
from app.domain.run import MAX_HISTORY, MAX_LOSSES, SUSPECT_LOSSES, Attempt, AttemptOutcome, Run, RunStatus
from app.ports import Claim, Due, ListQuery, NewRun, RunKey, RunSuspected, StepEnd
from tests.integration.store.making import RUN_TTL_S, TEXT, ended, everything

pytestmark = pytest.mark.anyio

LEASE_S = 60.0
ENDED = [status for status in RunStatus if status.ended]
RETRIABLE = [RunStatus.FAILED, RunStatus.EXPIRED, RunStatus.CANCELLED]

NewRuns = Callable[..., NewRun]


NOW = datetime(2031, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
# A caller may call his metadata as we call our fields, and the judge repeats anything.
LOOK_ALIKES = {
    "status": "queued",
    "completedAt": None,
    "outcome": None,
    "attempts": 7,
    "note": '"attempts":7,"history":[],"createdAt":"endedAt":null,"outcome":null}"completedAt":null"startedAt":null',
}


class StandingClock:
    """The store's clock, always at NOW."""

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def store(client: Redis) -> RedisRunStore:
    return RedisRunStore(client, run_ttl_s=RUN_TTL_S, idempotency_ttl_s=RUN_TTL_S, clock=StandingClock())


def begun(run: Run) -> Run:
    """Return the run as it is when an attempt has begun."""
    number = run.attempts + 1
    history = [*run.history, Attempt(number=number, started_at=NOW)]
    started_at = run.started_at or NOW
    return run.model_copy(
        update={"status": RunStatus.RUNNING, "attempts": number, "history": history, "started_at": started_at}
    )


def stopped(run: Run, outcome: AttemptOutcome) -> Run:
    """Return the run with its last attempt ended so."""
    last = run.history[-1].model_copy(update={"ended_at": NOW, "outcome": outcome})
    return run.model_copy(update={"history": [*run.history[:-1], last]})


async def run_of(store: RedisRunStore, key: RunKey) -> Run:
    stored = await store.get(key)
    assert stored is not None
    run = Run.model_validate_json(stored.body)
    assert run.status is stored.status
    return run


async def claimed(store: RedisRunStore, new: NewRun, lease_s: float = LEASE_S) -> Claim:
    _, claim = await store.create(new, claim_lease_s=lease_s)
    assert claim is not None
    return claim


async def finished(store: RedisRunStore, new: NewRun, status: RunStatus, **kept) -> Claim:
    claim = await claimed(store, new)
    options = {"cache_keys": [], "keep_request": True, **kept}
    assert await store.finish(claim, ended(claim.run, status), **options)
    return claim


async def test_a_new_run_is_stored_as_it_is(store: RedisRunStore, new_run: NewRuns):
    new = new_run(metadata={"team": "reviews"})
    created, claim = await store.create(new)
    assert created.new
    assert claim is None
    assert created.stored.body == new.run.model_dump_json(by_alias=True).encode()
    assert await store.get(new.key) == created.stored
    assert await store.get_request(new.key) == new.request


async def test_the_same_id_again_gives_the_run_that_stands(store: RedisRunStore, new_run: NewRuns):
    first, _ = await store.create(new_run("same-run"))
    again, claim = await store.create(new_run("same-run", fingerprint="other"), claim_lease_s=LEASE_S)
    assert not again.new
    assert claim is None
    assert again.stored == first.stored


async def test_simultaneous_creations_make_one_run(store: RedisRunStore, new_run: NewRuns):
    results = await asyncio.gather(*(store.create(new_run("same-run"), claim_lease_s=LEASE_S) for _ in range(10)))
    assert sum(created.new for created, _ in results) == 1
    assert sum(claim is not None for _, claim in results) == 1


async def test_tenants_do_not_see_each_other(store: RedisRunStore, new_run: NewRuns):
    await store.create(new_run("same-run", tenant="a"))
    other = RunKey("b", "same-run")
    assert await store.get(other) is None
    assert await store.get_request(other) is None
    assert await store.claim(other, LEASE_S) is None
    assert await store.cancel(other, datetime.now(UTC)) is None
    assert await store.delete(other) is None
    assert await store.events(other, None) == []
    assert (await store.list_page(ListQuery("b"))).bodies == []
    assert (await store.create(new_run("same-run", tenant="b")))[0].new


@pytest.mark.parametrize("tenant", ["a:b", "{a}", "a*", "größe", "", "assay:"])
async def test_any_tenant_name_has_keys_of_its_own(store: RedisRunStore, client: Redis, new_run: NewRuns, tenant: str):
    await store.create(new_run("same-run", tenant="a"))
    new = new_run("same-run", tenant=tenant)
    assert (await store.create(new))[0].new
    await store.delete(new.key)
    assert await store.get(RunKey("a", "same-run")) is not None
    assert len((await store.list_page(ListQuery("a"))).bodies) == 1


async def test_claiming_makes_a_queued_run_running_and_nothing_else(store: RedisRunStore, new_run: NewRuns):
    new = new_run(metadata=LOOK_ALIKES)
    await store.create(new)
    claim = await store.claim(new.key, LEASE_S)
    assert claim is not None
    assert claim.run == begun(new.run)
    assert (claim.losses, claim.taken_over) == (0, False)
    assert claim.request == new.request
    assert await run_of(store, new.key) == claim.run


async def test_of_many_claimants_one_gets_the_run(store: RedisRunStore, new_run: NewRuns):
    new = new_run()
    await store.create(new)
    claims = await asyncio.gather(*(store.claim(new.key, LEASE_S) for _ in range(10)))
    assert sum(claim is not None for claim in claims) == 1


async def test_a_run_whose_lease_ended_is_taken_over_and_its_partial_results_with_it(
    store: RedisRunStore, new_run: NewRuns
):
    new = new_run(metadata=LOOK_ALIKES)
    await store.create(new)
    first = await store.claim(new.key, LEASE_S)
    partial = first.run.model_copy(update={"preprocess_step_result": LOOK_ALIKES})
    assert await store.checkpoint(first, partial, "preprocess")
    assert await store.claim(first.key, LEASE_S) is None
    assert await store.renew(first, 0)
    assert await store.claim(first.key, LEASE_S, take_over=False) is None
    second = await store.claim(first.key, LEASE_S)
    assert second is not None
    assert second.token > first.token
    assert (second.losses, second.taken_over) == (1, True)
    assert second.run == begun(stopped(partial, AttemptOutcome.LOST))
    assert not await store.renew(first, LEASE_S)
    assert not await store.checkpoint(first, first.run, "analyze")
    assert not await store.release(first)
    assert not await store.finish(first, ended(first.run), cache_keys=[], keep_request=True)
    assert await run_of(store, first.key) == second.run
    assert await store.finish(second, ended(partial), cache_keys=[], keep_request=True)


async def lost(store: RedisRunStore, key: RunKey, times: int) -> None:
    """Have the run lost so often, by claims whose lease ends at once."""
    for _ in range(times + 1):
        await store.claim(key, 0, alone=True)


async def test_a_suspect_is_claimed_alone_only_and_a_refusal_is_no_loss(store: RedisRunStore, new_run: NewRuns):
    new = new_run()
    await store.create(new)
    await lost(store, new.key, SUSPECT_LOSSES - 1)
    before = await store.get(new.key)
    for _ in range(5):
        with pytest.raises(RunSuspected):
            await store.claim(new.key, LEASE_S)
    assert await store.get(new.key) == before
    claim = await store.claim(new.key, LEASE_S, alone=True)
    assert (claim.losses, claim.taken_over) == (SUSPECT_LOSSES, True)
    await store.release(claim)
    with pytest.raises(RunSuspected):
        await store.claim(new.key, LEASE_S)


async def test_what_was_lost_too_often_is_claimed_for_its_end_only(store: RedisRunStore, new_run: NewRuns):
    new = new_run()
    await store.create(new)
    await lost(store, new.key, MAX_LOSSES - 1)
    claim = await store.claim(new.key, LEASE_S)
    assert (claim.losses, claim.taken_over) == (MAX_LOSSES, True)
    assert claim.run.attempts == MAX_LOSSES
    assert [attempt.outcome for attempt in claim.run.history] == [AttemptOutcome.LOST] * MAX_LOSSES
    assert await store.finish(claim, ended(claim.run, RunStatus.FAILED), cache_keys=[], keep_request=True)
    assert await store.requeue(new.key, new.run.model_copy(update={"history": claim.run.history, "attempts": 3}))
    again = await store.claim(new.key, LEASE_S)
    assert (again.losses, again.taken_over, again.run.attempts) == (0, False, MAX_LOSSES + 1)


async def test_of_many_attempts_the_latest_are_remembered(store: RedisRunStore, new_run: NewRuns):
    new = new_run()
    await store.create(new)
    for number in range(1, MAX_HISTORY + 6):
        claim = await store.claim(new.key, LEASE_S)
        assert claim.run.attempts == number
        assert len(claim.run.history) == min(number, MAX_HISTORY)
        assert claim.run.history[-1] == Attempt(number=number, started_at=NOW)
        await store.release(claim)
    assert [attempt.number for attempt in (await run_of(store, new.key)).history] == list(range(6, MAX_HISTORY + 6))


async def test_a_body_of_before_there_was_a_history_gets_one(store: RedisRunStore, client: Redis, new_run: NewRuns):
    new = new_run(metadata=LOOK_ALIKES)
    await store.create(new)
    (run,) = [key async for key in client.scan_iter(match="*:run:*")]
    body = await client.hget(run, "body")
    older = body.replace(b',"history":[],"createdAt":"2', b',"createdAt":"2')
    assert older != body
    await client.hset(run, "body", older)
    assert (await store.claim(new.key, LEASE_S)).run == begun(new.run)


async def test_a_run_is_due_when_nobody_has_told_of_it_and_not_once_it_ended(
    store: RedisRunStore, client: Redis, new_run: NewRuns
):
    waiting = new_run("waiting", tenant="größe")
    deadline = datetime.now(UTC).replace(microsecond=5000)
    held = new_run("held")
    await store.create(waiting)
    await store.create(replace(held, run=held.run.model_copy(update={"deadline_at": deadline})), claim_lease_s=LEASE_S)
    for status in ENDED:
        await finished(store, new_run(status.value), status)
    gone = new_run("gone")
    await store.create(gone)
    await store.delete(gone.key)
    assert await client.zcard("assay:due") == 2
    assert await store.due(10, 60) == []
    await put_forward(client)
    assert set(await store.due(10, 60)) == {Due(held.key, deadline), Due(waiting.key, None)}
    # Who asks next does not get them too.
    assert await store.due(10, 60) == []


async def put_forward(client: Redis) -> None:
    """Make every run due."""
    for member in await client.zrange("assay:due", 0, -1):
        await client.zadd("assay:due", {member: 0})


async def test_what_changes_a_run_puts_it_off(store: RedisRunStore, client: Redis, new_run: NewRuns):
    new = new_run()
    await store.create(new)

    async def is_due() -> bool:
        return await store.due(1, 0) != []

    await put_forward(client)
    assert await is_due()
    claim = await store.claim(new.key, LEASE_S)
    assert not await is_due()
    await put_forward(client)
    await store.renew(claim, LEASE_S)
    assert not await is_due()
    await put_forward(client)
    await store.release(claim)
    assert not await is_due()
    await put_forward(client)
    claim = await store.claim(new.key, LEASE_S)
    await store.finish(claim, ended(claim.run, RunStatus.FAILED), cache_keys=[], keep_request=True)
    await store.requeue(new.key, new.run)
    assert await client.zcard("assay:due") == 1
    assert not await is_due()


async def test_a_run_whose_life_is_over_is_due_no_more(store: RedisRunStore, client: Redis, new_run: NewRuns):
    await store.create(new_run())
    await put_forward(client)
    await client.delete(*[key async for key in client.scan_iter(match="*:run:*")])
    assert await store.due(10, 60) == []
    assert await client.zcard("assay:due") == 0


async def test_one_of_many_may_sweep(store: RedisRunStore):
    assert sum(await asyncio.gather(*(store.may_sweep(60) for _ in range(10)))) == 1


async def test_a_renewed_lease_is_not_taken_over(store: RedisRunStore, new_run: NewRuns):
    claim = await claimed(store, new_run(), lease_s=0)
    assert await store.renew(claim, LEASE_S)
    assert await store.claim(claim.key, LEASE_S) is None


async def test_a_released_run_is_queued_with_its_partial_results(store: RedisRunStore, new_run: NewRuns):
    new = new_run(metadata=LOOK_ALIKES)
    await store.create(new)
    first = await store.claim(new.key, LEASE_S)
    partial = first.run.model_copy(update={"preprocess_step_result": LOOK_ALIKES})
    await store.checkpoint(first, partial, "preprocess")
    assert await store.release(first)
    given_back = stopped(partial, AttemptOutcome.GIVEN_BACK).model_copy(update={"status": RunStatus.QUEUED})
    assert await run_of(store, first.key) == given_back
    assert not await store.release(first)
    second = await store.claim(first.key, LEASE_S)
    assert second is not None
    assert second.token > first.token
    assert (second.losses, second.taken_over) == (0, False)
    assert second.run == begun(given_back)


@pytest.mark.parametrize("status", ENDED)
async def test_an_ended_run_stays_as_it_is(store: RedisRunStore, new_run: NewRuns, status: RunStatus):
    claim = await finished(store, new_run(), status)
    before = await store.get(claim.key)
    assert not await store.renew(claim, LEASE_S)
    assert not await store.checkpoint(claim, claim.run, "analyze")
    assert not await store.release(claim)
    assert not await store.finish(claim, ended(claim.run, RunStatus.FAILED), cache_keys=[], keep_request=False)
    assert await store.claim(claim.key, LEASE_S) is None
    assert await store.cancel(claim.key, datetime.now(UTC)) == before
    assert await store.get(claim.key) == before
    assert await store.get_request(claim.key) is not None


@pytest.mark.parametrize("status", ENDED)
async def test_only_what_did_not_succeed_is_tried_again(store: RedisRunStore, new_run: NewRuns, status: RunStatus):
    new = new_run()
    first = await finished(store, new, status)
    assert await store.requeue(new.key, new.run) is (status in RETRIABLE)
    second = await store.claim(new.key, LEASE_S)
    assert (second is not None) is (status in RETRIABLE)
    if second is not None:
        assert second.token > first.token
        assert await store.events(new.key, None) == []


async def test_a_run_that_has_not_ended_is_not_requeued(store: RedisRunStore, new_run: NewRuns):
    new = new_run()
    assert not await store.requeue(new.key, new.run)
    await store.create(new)
    assert not await store.requeue(new.key, new.run)
    await store.claim(new.key, LEASE_S)
    assert not await store.requeue(new.key, new.run)


@pytest.mark.parametrize("is_running", [False, True])
async def test_cancelling_ends_a_run_that_has_not_ended(store: RedisRunStore, new_run: NewRuns, is_running: bool):
    new = new_run(metadata=LOOK_ALIKES)
    await store.create(new)
    claim = await store.claim(new.key, LEASE_S) if is_running else None
    cancelled = await store.cancel(new.key, NOW)
    assert cancelled == await store.get(new.key)
    run = stopped(claim.run, AttemptOutcome.CANCELLED) if claim else new.run
    expected = run.model_copy(update={"status": RunStatus.CANCELLED, "completed_at": NOW})
    assert await run_of(store, new.key) == expected
    assert await store.claim(new.key, 0) is None
    if claim is not None:
        assert not await store.renew(claim, LEASE_S)
        assert not await store.checkpoint(claim, claim.run, None)
    assert [event.event for event in await store.events(new.key, None)] == ["run"]


async def test_cancelling_wins_over_checkpoints_that_go_on(store: RedisRunStore, new_run: NewRuns):
    claim = await claimed(store, new_run())

    async def keep_writing() -> None:
        while await store.checkpoint(claim, claim.run, None):
            pass

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(keep_writing())
        assert (await store.cancel(claim.key, datetime.now(UTC))).status is RunStatus.CANCELLED


async def test_events_tell_each_step_and_then_the_run(store: RedisRunStore, new_run: NewRuns):
    claim = await claimed(store, new_run())
    partial = claim.run.model_copy(update={"preprocess_prompt": 'A prompt with "quotes",\nlines and 字.'})
    await store.checkpoint(claim, claim.run, None)
    await store.checkpoint(claim, partial, "preprocess")
    await store.checkpoint(claim, partial, "analyze")
    end = ended(partial)
    await store.finish(claim, end, cache_keys=[], keep_request=True)
    events = await store.events(claim.key, None)
    assert [event.event for event in events] == ["step", "step", "run"]
    assert json.loads(events[0].data) == {"step": "preprocess", "run": partial.model_dump(mode="json")}
    assert json.loads(events[1].data)["step"] == "analyze"
    assert Run.model_validate_json(events[2].data) == end
    assert await store.events(claim.key, events[0].id) == events[1:]
    assert await store.events(claim.key, events[2].id) == []


async def test_a_step_written_with_the_end_is_told_before_it(store: RedisRunStore, new_run: NewRuns):
    claim = await claimed(store, new_run())
    end = ended(claim.run)
    last = StepEnd("generateReason", claim.run)
    await store.finish(claim, end, cache_keys=[], keep_request=True, last_step=last)
    step, run = await store.events(claim.key, None)
    assert json.loads(step.data) == {"step": "generateReason", "run": claim.run.model_dump(mode="json")}
    assert Run.model_validate_json(run.data) == end


@pytest.mark.parametrize("after", ["", "nonsense", "-", "+", "1", "0-0) COUNT 1", "99999999999999999999-0", "é"])
async def test_an_event_id_that_is_none_of_ours_means_all(store: RedisRunStore, new_run: NewRuns, after: str):
    claim = await claimed(store, new_run())
    await store.checkpoint(claim, claim.run, "preprocess")
    assert len(await store.events(claim.key, after)) == 1


async def test_a_request_that_is_not_to_be_kept_is_gone_at_the_end(
    store: RedisRunStore, client: Redis, new_run: NewRuns
):
    new = new_run()
    claim = await claimed(store, new)
    run = ended(claim.run).model_copy(update={"reason": None})
    assert await store.finish(claim, run, cache_keys=[], keep_request=False)
    assert await store.get_request(new.key) is None
    assert TEXT not in await everything(client)


async def test_delete_returns_the_cache_keys_of_all_attempts(store: RedisRunStore, new_run: NewRuns):
    new = new_run()
    await finished(store, new, RunStatus.FAILED, cache_keys=["one", "two"])
    await store.requeue(new.key, new.run)
    claim = await store.claim(new.key, LEASE_S)
    await store.finish(claim, ended(claim.run), cache_keys=["two", "three"], keep_request=True)
    assert await store.delete(new.key) == ["one", "two", "three"]
    assert await store.delete(new.key) is None


@pytest.mark.parametrize("end", [*ENDED, RunStatus.QUEUED, RunStatus.RUNNING])
async def test_after_delete_nothing_holds_the_id_or_the_text(
    store: RedisRunStore, client: Redis, new_run: NewRuns, end: RunStatus
):
    new = new_run("deleted-run", metadata={"team": "reviews", "n": 1}, idempotency_key="once")
    await store.remember("default", "once", new.fingerprint, ("deleted-run",))
    await store.create(new)
    if end is not RunStatus.QUEUED:
        claim = await store.claim(new.key, LEASE_S)
        await store.checkpoint(claim, claim.run.model_copy(update={"reason": TEXT}), "analyze")
    if end.ended:
        await store.finish(claim, ended(claim.run, end), cache_keys=["key"], keep_request=True)
    found = await everything(client)
    assert "deleted-run" in found
    assert TEXT in found
    assert await store.delete(new.key) is not None
    found = await everything(client)
    assert "deleted-run" not in found
    assert TEXT not in found


@pytest.mark.parametrize("lease_s", [None, LEASE_S])
async def test_a_withdrawn_run_leaves_nothing(
    store: RedisRunStore, client: Redis, new_run: NewRuns, lease_s: float | None
):
    new = new_run("withdrawn-run", idempotency_key="once")
    await store.remember("default", "once", new.fingerprint, ("withdrawn-run",))
    await store.create(new, claim_lease_s=lease_s)
    assert await store.withdraw(new.key)
    assert "withdrawn-run" not in await everything(client)
    assert not await store.withdraw(new.key)


@pytest.mark.parametrize("lease_s", [None, LEASE_S])
async def test_a_run_is_not_withdrawn_once_a_repeat_of_its_request_was_told_of_it(
    store: RedisRunStore, new_run: NewRuns, lease_s: float | None
):
    new = new_run()
    await store.create(new, claim_lease_s=lease_s)
    again, _ = await store.create(new, claim_lease_s=lease_s)
    assert not await store.withdraw(new.key)
    assert await store.get(new.key) == again.stored


async def test_a_worker_that_goes_on_writes_nothing_of_a_deleted_run(
    store: RedisRunStore, client: Redis, new_run: NewRuns
):
    claim = await claimed(store, new_run())
    await store.delete(claim.key)
    assert not await store.renew(claim, LEASE_S)
    assert not await store.checkpoint(claim, claim.run, "analyze")
    assert not await store.release(claim)
    assert not await store.finish(claim, ended(claim.run), cache_keys=[], keep_request=True)
    assert not await store.requeue(claim.key, claim.run)
    assert await client.dbsize() == 0


async def test_delete_leaves_a_key_that_stands_for_another_run_by_now(store: RedisRunStore, new_run: NewRuns):
    new = new_run(idempotency_key="once")
    await store.create(new)
    await store.remember("default", "once", "f", ("another-run",))
    await store.delete(new.key)
    assert (await store.remember("default", "once", "f", ("third-run",))).run_ids == ("another-run",)


async def test_an_idempotency_key_stands_for_what_it_was_tied_to_first(store: RedisRunStore, client: Redis):
    first = await store.remember("a", "Kéy \x00 with 字", "f1", ("run-1", "run-2"))
    assert first == ("f1", ("run-1", "run-2"))
    assert await store.remember("a", "Kéy \x00 with 字", "f2", ("run-3",)) == ("f1", ("run-1", "run-2"))
    assert await store.remember("a", "Kéy \x00 with 字", "f1", ("run-1", "run-2")) == ("f1", ("run-1", "run-2"))
    assert await store.remember("b", "Kéy \x00 with 字", "f2", ("run-3",)) == ("f2", ("run-3",))
    assert await store.recall("a", "Kéy \x00 with 字") == ("f1", ("run-1", "run-2"))
    assert await store.recall("c", "Kéy \x00 with 字") is None
    assert "Kéy" not in await everything(client)


async def test_every_key_ends_by_itself_but_the_fence_key(store: RedisRunStore, client: Redis, new_run: NewRuns):
    for status in ENDED:
        new = new_run(metadata={"status": status.value}, idempotency_key=status.value)
        await store.remember("default", status.value, "f", (new.key.run_id,))
        await finished(store, new, status)
        if status in RETRIABLE[:2]:
            await store.requeue(new.key, new.run)
    await store.fence_key()
    lives = {key: await client.ttl(key) async for key in client.scan_iter()}
    assert lives.pop(b"assay:fence-key") == -1
    # It names runs that have not ended, and is swept.
    assert lives.pop(b"assay:due") == -1
    assert len(lives) > 20
    assert all(0 < ttl <= RUN_TTL_S for ttl in lives.values())


async def test_progress_does_not_lengthen_a_run_s_life_and_another_attempt_does(
    store: RedisRunStore, client: Redis, new_run: NewRuns
):
    claim = await claimed(store, new_run())
    keys = [key async for key in client.scan_iter(match="*:run-*")]
    for key in keys:
        await client.expire(key, 100)
    await store.checkpoint(claim, claim.run, "analyze")
    await store.finish(claim, ended(claim.run, RunStatus.FAILED), cache_keys=[], keep_request=True)
    assert {await client.ttl(key) async for key in client.scan_iter(match="*:run-*")} <= {99, 100}
    await store.requeue(claim.key, claim.run)
    assert {await client.ttl(key) > 100 async for key in client.scan_iter(match="*:run-*")} == {True}


async def test_the_fence_key_is_one_for_all_processes(client: Redis):
    stores = [RedisRunStore(client, run_ttl_s=60, idempotency_ttl_s=60) for _ in range(5)]
    keys = await asyncio.gather(*(store.fence_key() for store in stores))
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32
    assert await stores[0].fence_key() == keys[0]


REPEATED = ["create", "claim", "checkpoint", "finish", "release", "cancel", "requeue"]


@pytest.mark.parametrize("name", REPEATED)
async def test_a_command_repeated_because_its_reply_was_lost_succeeds_and_is_done_once(
    client: Redis, new_run: NewRuns, monkeypatch: pytest.MonkeyPatch, name: str
):
    store = RedisRunStore(client, run_ttl_s=60, idempotency_ttl_s=60)
    new = new_run()
    script = store._scripts[name]

    async def twice(**arguments):
        await script(**arguments)
        return await script(**arguments)

    monkeypatch.setitem(store._scripts, name, twice)
    created, _ = await store.create(new)
    assert created.new
    claim = await store.claim(new.key, LEASE_S)
    assert claim.token == 1
    assert await store.checkpoint(claim, claim.run, "analyze")
    assert await store.release(claim)
    claim = await store.claim(new.key, LEASE_S)
    assert await store.finish(claim, ended(claim.run, RunStatus.FAILED), cache_keys=["key"], keep_request=True)
    assert [event.event for event in await store.events(new.key, None)] == ["step", "run"]
    assert await store.requeue(new.key, new.run)
    assert (await store.cancel(new.key, datetime.now(UTC))).status is RunStatus.CANCELLED
    assert len(await store.events(new.key, None)) == 1
    assert await store.delete(new.key) == ["key"]
