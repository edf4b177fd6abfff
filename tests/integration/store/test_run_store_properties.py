"""Random interleavings of two claimants, a canceller and the end of leases, against a model of the arrows."""

import asyncio
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
from app.domain.run import Run, RunStatus
from app.ports import Claim, ListQuery
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
CLAIMANTS = st.sampled_from(["first", "second"])
LEASES = st.sampled_from([0.0, LEASE_S])
END_STATES = st.sampled_from([s for s in RunStatus if s.ended and s is not RunStatus.CANCELLED])


class Claimants(RuleBasedStateMachine):
    """One run; `holder` is whose claim is valid, and a lease of nothing is one that has ended."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client = connect(self.url)
        self.store = RedisRunStore(self.client, run_ttl_s=3600, idempotency_ttl_s=3600)
        self.wait(self.client.flushall())
        self.make = run_maker()
        self.claims: dict[str, Claim] = {}
        self.holder: str | None = None
        self.leased = False
        self.status: RunStatus | None = None
        self.highest = 0
        self.progress: dict[str, int] | None = None

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
        created, claim = self.wait(self.store.create(self.new, claim_lease_s=lease_s if inline else None))
        assert created.new is (self.status is None)
        assert (claim is not None) is (created.new and inline)
        if created.new:
            self.status, self.highest, self.progress = RunStatus.QUEUED, 0, None
            self.claims.clear()
            self.let_go()
        if claim is not None:
            self.take("first", claim, lease_s)

    @rule(claimant=CLAIMANTS, lease_s=LEASES)
    def claim(self, claimant: str, lease_s: float) -> None:
        free = self.status is RunStatus.QUEUED or (self.status is RunStatus.RUNNING and not self.leased)
        claim = self.wait(self.store.claim(self.new.key, lease_s))
        assert (claim is not None) is free
        if claim is not None:
            assert claim.run.preprocess_step_result == self.progress
            self.take(claimant, claim, lease_s)

    def take(self, claimant: str, claim: Claim, lease_s: float) -> None:
        assert claim.token > self.highest
        self.highest = claim.token
        self.claims[claimant] = claim
        self.holder, self.leased, self.status = claimant, lease_s > 0, RunStatus.RUNNING

    def let_go(self) -> None:
        self.holder, self.leased = None, False

    @precondition(lambda self: self.claims)
    @rule(claimant=CLAIMANTS, lease_s=LEASES)
    def renew(self, claimant: str, lease_s: float) -> None:
        if claim := self.claims.get(claimant):
            renewed = self.wait(self.store.renew(claim, lease_s))
            assert renewed is (claimant == self.holder)
            self.leased = lease_s > 0 if renewed else self.leased

    @precondition(lambda self: self.claims)
    @rule(claimant=CLAIMANTS, number=st.integers())
    def checkpoint(self, claimant: str, number: int) -> None:
        if claim := self.claims.get(claimant):
            progress = {"number": number}
            run = claim.run.model_copy(update={"preprocess_step_result": progress})
            kept = self.wait(self.store.checkpoint(claim, run, "preprocess"))
            assert kept is (claimant == self.holder)
            self.progress = progress if kept else self.progress

    @precondition(lambda self: self.claims)
    @rule(claimant=CLAIMANTS, status=END_STATES)
    def finish(self, claimant: str, status: RunStatus) -> None:
        if claim := self.claims.get(claimant):
            run = ended(claim.run, status)
            written = self.wait(self.store.finish(claim, run, cache_keys=[], keep_request=True))
            assert written is (claimant == self.holder)
            if written:
                self.status, self.progress = status, run.preprocess_step_result
                self.let_go()

    @precondition(lambda self: self.claims)
    @rule(claimant=CLAIMANTS)
    def release(self, claimant: str) -> None:
        if claim := self.claims.get(claimant):
            released = self.wait(self.store.release(claim))
            assert released is (claimant == self.holder)
            if released:
                self.status = RunStatus.QUEUED
                self.let_go()

    @rule()
    def cancel(self) -> None:
        stored = self.wait(self.store.cancel(self.new.key, datetime.now(UTC)))
        assert (stored is None) is (self.status is None)
        if self.status in {RunStatus.QUEUED, RunStatus.RUNNING}:
            self.status = RunStatus.CANCELLED
            self.let_go()
        assert stored is None or stored.status is self.status

    @rule()
    def requeue(self) -> None:
        requeued = self.wait(self.store.requeue(self.new.key, self.new.run))
        assert requeued is (self.status in {RunStatus.FAILED, RunStatus.EXPIRED, RunStatus.CANCELLED})
        if requeued:
            self.status, self.progress = RunStatus.QUEUED, None

    @rule()
    def delete(self) -> None:
        keys = self.wait(self.store.delete(self.new.key))
        assert (keys is None) is (self.status is None)
        self.status = None
        self.let_go()

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
        for status in RunStatus:
            page = self.wait(self.store.list_page(ListQuery("default", status=status)))
            assert len(page.bodies) == (status is self.status)

    @invariant()
    def every_move_is_an_arrow(self) -> None:
        before = getattr(self, "before", None)
        assert self.status is before or self.status in ARROWS[before]
        self.before = self.status


def test_only_allowed_arrows_and_one_holder_at_a_time(valkey_url: str):
    Claimants.url = valkey_url
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    options = settings(max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=checks)
    run_state_machine_as_test(Claimants, settings=options)


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
