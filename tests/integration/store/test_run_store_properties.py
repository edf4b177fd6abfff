"""Random interleavings of two workers, a reaper, a canceller and leases that end, against a model of the arrows."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.adapters.redis_client import connect
from app.adapters.redis_runs import RedisRunStore
from app.adapters.rq_queue import RqRunQueue
from app.domain.request import Priority
from app.domain.run import MAX_HISTORY, MAX_LOSSES, SUSPECT_LOSSES, Attempt, Run, RunStatus
from app.ports import Claim, Due, ListQuery, NewRun, RunSuspected
from tests.integration.store.making import ended, run_maker

LEASE_S = 60.0
ARROWS = {
    None: {RunStatus.QUEUED, RunStatus.RUNNING},
    RunStatus.QUEUED: {RunStatus.RUNNING, RunStatus.CANCELLED, RunStatus.EXPIRED, None},
    RunStatus.RUNNING: {RunStatus.QUEUED, *(status for status in RunStatus if status.ended), None},
    RunStatus.FAILED: {RunStatus.QUEUED, None},
    RunStatus.EXPIRED: {RunStatus.QUEUED, None},
    RunStatus.CANCELLED: {RunStatus.QUEUED, None},
    RunStatus.COMPLETED: {None},
    RunStatus.NOT_SCORABLE: {None},
}
LIVE = (RunStatus.QUEUED, RunStatus.RUNNING)
WORKERS = st.sampled_from(["first", "second"])
# A lease of nothing is one that has ended: its holder died, or is frozen and comes back later.
LEASES = st.sampled_from([0.0, 0.0, LEASE_S])
END_STATES = st.sampled_from([s for s in RunStatus if s.ended and s is not RunStatus.CANCELLED])


class Workers(RuleBasedStateMachine):
    """One run; `holder` is whose claim is valid, `outcomes` how its attempts ended (None: it has not)."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client = connect(self.url)
        self.store = RedisRunStore(self.client, run_ttl_s=3600, idempotency_ttl_s=3600)
        self.queue = RqRunQueue(self.client, limit=100)
        self.wait(self.client.flushall())
        self.make = run_maker()
        self.forget()

    def forget(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.status: RunStatus | None = None
        self.highest, self.losses, self.attempts = 0, 0, 0
        self.outcomes: list[str | None] = []
        self.progress: dict[str, int] | None = None
        self.let_go()

    def wait(self, awaitable):
        async def bounded():
            async with asyncio.timeout(10):
                return await awaitable

        return self.runner.run(bounded())

    def teardown(self) -> None:
        self.wait(self.client.aclose())
        self.runner.close()

    @initialize(inline=st.booleans(), lease_s=LEASES)
    def begin(self, inline: bool, lease_s: float) -> None:
        self.new = self.make("the-run")
        self.create(inline, lease_s)

    @rule(inline=st.booleans(), lease_s=LEASES)
    def create(self, inline: bool, lease_s: float) -> None:
        created, claim = self.wait(
            self.store.create(_inline(self.new) if inline else self.new, claim_lease_s=lease_s if inline else None)
        )
        assert created.new is (self.status is None)
        assert (claim is not None) is (created.new and inline)
        if created.new:
            self.forget()
            self.status = RunStatus.QUEUED
        if claim is not None:
            self.attempts, self.outcomes = 1, [None]
            self.take("first", claim, lease_s)

    @rule(worker=WORKERS, lease_s=LEASES, alone=st.booleans(), take_over=st.sampled_from([True, True, False]))
    def claim(self, worker: str, lease_s: float, alone: bool, take_over: bool) -> None:
        is_lost = self.status is RunStatus.RUNNING and not self.leased
        losses = self.losses + is_lost
        is_free = self.status is RunStatus.QUEUED or (is_lost and take_over)
        is_refused = is_free and not alone and SUSPECT_LOSSES <= losses < MAX_LOSSES
        try:
            claim = self.wait(self.store.claim(self.new.key, lease_s, alone=alone, take_over=take_over))
        except RunSuspected:
            assert is_refused
            return
        assert (claim is not None) is (is_free and not is_refused)
        if claim is not None:
            self.losses = losses
            self.end_attempt("lost")
            if losses < MAX_LOSSES:
                self.attempts += 1
                self.outcomes.append(None)
            assert (claim.losses, claim.taken_over) == (losses, is_lost)
            assert claim.run.preprocess_step_result == self.progress
            self.take(worker, claim, lease_s)

    def take(self, worker: str, claim: Claim, lease_s: float) -> None:
        assert claim.token == self.highest + 1
        self.highest = claim.token
        self.claims[worker] = claim
        self.holder, self.leased, self.status = worker, lease_s > 0, RunStatus.RUNNING

    def let_go(self) -> None:
        self.holder, self.leased = None, False

    def end_attempt(self, outcome: str) -> None:
        if self.outcomes and self.outcomes[-1] is None:
            self.outcomes[-1] = outcome

    @precondition(lambda self: self.claims)
    @rule(worker=WORKERS, lease_s=LEASES)
    def renew(self, worker: str, lease_s: float) -> None:
        if claim := self.claims.get(worker):
            renewed = self.wait(self.store.renew(claim, lease_s))
            assert renewed is (worker == self.holder)
            self.leased = lease_s > 0 if renewed else self.leased

    @precondition(lambda self: self.claims)
    @rule(worker=WORKERS, number=st.integers())
    def checkpoint(self, worker: str, number: int) -> None:
        if claim := self.claims.get(worker):
            progress = {"number": number}
            run = claim.run.model_copy(update={"preprocess_step_result": progress})
            kept = self.wait(self.store.checkpoint(claim, run, "preprocess"))
            assert kept is (worker == self.holder)
            self.progress = progress if kept else self.progress

    @precondition(lambda self: self.claims)
    @rule(worker=WORKERS, status=END_STATES)
    def finish(self, worker: str, status: RunStatus) -> None:
        if claim := self.claims.get(worker):
            run = ended(claim.run, status).with_attempt_ended(datetime.now(UTC))
            written = self.wait(self.store.finish(claim, run, cache_keys=[], keep_request=True))
            assert written is (worker == self.holder)
            if written:
                self.status, self.progress = status, run.preprocess_step_result
                self.end_attempt(status.value)
                self.let_go()

    @precondition(lambda self: self.claims)
    @rule(worker=WORKERS)
    def release(self, worker: str) -> None:
        if claim := self.claims.get(worker):
            released = self.wait(self.store.release(claim))
            assert released is (worker == self.holder)
            if released:
                self.status = RunStatus.QUEUED
                self.end_attempt("given_back")
                self.let_go()

    @rule()
    def cancel(self) -> None:
        stored = self.wait(self.store.cancel(self.new.key, datetime.now(UTC)))
        assert (stored is None) is (self.status is None)
        if self.status in LIVE:
            self.status = RunStatus.CANCELLED
            self.end_attempt("cancelled")
            self.let_go()
        assert stored is None or stored.status is self.status

    @rule()
    def retry(self) -> None:
        stored = self.wait(self.store.get(self.new.key))
        before = Run.model_validate_json(stored.body) if stored else self.new.run
        run = self.new.run.model_copy(update={"attempts": before.attempts, "history": before.history})
        requeued = self.wait(self.store.requeue(self.new.key, run))
        assert requeued is (self.status in {RunStatus.FAILED, RunStatus.EXPIRED, RunStatus.CANCELLED})
        if requeued:
            self.status, self.progress, self.losses = RunStatus.QUEUED, None, 0

    @rule()
    def delete(self) -> None:
        keys = self.wait(self.store.delete(self.new.key))
        assert (keys is None) is (self.status is None)
        self.status = None
        self.let_go()

    @rule()
    def lose_the_job(self) -> None:
        self.wait(self.queue.remove(self.new.key))

    @rule()
    def reap(self) -> None:
        """What is due and has no job gets one; what is due now is not due to another reaper at once."""
        for member in self.wait(self.client.zrange("assay:due", 0, -1)):
            self.wait(self.client.zadd("assay:due", {member: 0}))
        due = self.wait(self.store.due(10, LEASE_S))
        assert due == ([Due(self.new.key, None)] if self.status in LIVE else [])
        assert self.wait(self.store.due(10, LEASE_S)) == []
        keys = [run.key for run in due]
        for key in self.wait(self.queue.missing(keys)):
            self.wait(self.queue.enqueue(key, Priority.NORMAL, 60))
        assert self.wait(self.queue.missing(keys)) == []

    @invariant()
    def the_store_agrees_with_the_model_and_with_itself(self) -> None:
        if not hasattr(self, "new"):
            return
        stored = self.wait(self.store.get(self.new.key))
        assert (stored.status if stored else None) is self.status
        if stored:
            run = Run.model_validate_json(stored.body)
            assert run.status is self.status
            assert run.preprocess_step_result == self.progress
            assert run.attempts == self.attempts
            assert [attempt.outcome for attempt in run.history] == self.outcomes[-MAX_HISTORY:]
        for status in RunStatus:
            page = self.wait(self.store.list_page(ListQuery("default", status=status)))
            assert len(page.bodies) == (status is self.status)

    @invariant()
    def tokens_losses_and_the_due_index_are_right(self) -> None:
        if not hasattr(self, "new"):
            return
        run = f"assay:{{default}}:run:{self.new.key.run_id}"
        token, losses = self.wait(self.client.hmget(run, "token", "losses"))
        if self.status is not None:
            assert (int(token), int(losses)) == (self.highest, self.losses)
        assert self.wait(self.client.zrange("assay:due", 0, -1)) == ([run.encode()] if self.status in LIVE else [])

    @invariant()
    def every_move_is_an_arrow(self) -> None:
        before = getattr(self, "before", None)
        assert self.status is before or self.status in ARROWS[before]
        self.before = self.status


def _inline(new: NewRun) -> NewRun:
    first = Attempt(number=1, started_at=datetime.now(UTC))
    return replace(new, run=new.run.model_copy(update={"attempts": 1, "history": [first]}))


def test_only_allowed_arrows_and_one_holder_at_a_time(valkey_url: str):
    Workers.url = valkey_url
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    options = settings(max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=checks)
    run_state_machine_as_test(Workers, settings=options)


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(5))
async def test_of_two_that_race_to_end_a_run_one_wins(valkey_url: str, seed: int):
    """A worker that finishes against a caller that cancels, really at once."""
    first, second = connect(valkey_url), connect(valkey_url)
    stores = [RedisRunStore(client, run_ttl_s=3600, idempotency_ttl_s=3600) for client in (first, second)]
    for number in range(20):
        new = run_maker()(f"race-{seed}-{number:04d}")
        _, claim = await stores[0].create(new, claim_lease_s=LEASE_S)
        finished, cancelled = await asyncio.gather(
            stores[0].finish(claim, ended(claim.run), cache_keys=[], keep_request=True),
            stores[1].cancel(new.key, datetime.now(UTC)),
        )
        assert cancelled.status is (RunStatus.COMPLETED if finished else RunStatus.CANCELLED)
        assert await stores[1].get(new.key) == cancelled
        assert [event.event for event in await stores[1].events(new.key, None)] == ["run"]
    await first.aclose()
    await second.aclose()
