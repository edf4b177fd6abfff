"""Claim runs, for those who execute them or end them."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta

from app.domain.request import RunRequest
from app.domain.run import MAX_LOSSES, Run
from app.ports import Claim, RunKey, RunSuspected, Slot
from app.runs.deps import Deps
from app.runs.recovery import Reason, tell_recovery


def is_spent(claim: Claim) -> bool:
    """Whether the run was lost so often that it is only to be ended."""
    return claim.losses >= MAX_LOSSES


def accepted_at(run: Run, request: RunRequest) -> datetime:
    """Return when the run was accepted, or accepted again by a retry, which gives it a new deadline."""
    if run.deadline_at is None:
        return run.created_at
    return run.deadline_at - timedelta(milliseconds=request.timeout_ms)


def milliseconds_since(start: datetime, now: datetime) -> float:
    """Return how long that is, and 0 when clocks disagree."""
    return round(max((now - start).total_seconds(), 0.0) * 1000, 3)


async def claim_run(deps: Deps, key: RunKey, *, alone: bool = False) -> Claim | None:
    """Begin an attempt at a run that waits, or whose holder's lease ended; None when it is not to be had.

    Nothing is taken over by a process that can't be sure of it (see Steadiness). Raises RunSuspected.
    """
    take_over = deps.steadiness.is_steady
    claim = await deps.store.claim(key, deps.policy.lease_s, alone=alone, take_over=take_over)
    if claim is None:
        return None
    if claim.taken_over:
        tell_recovery(deps, Reason.LEASE_EXPIRED, key.run_id)
    return claim if is_spent(claim) else replace(claim, run=_with_wait(deps, claim))


def _with_wait(deps: Deps, claim: Claim) -> Run:
    run = claim.run
    if run.started_at is None or not run.history or run.started_at != run.history[-1].started_at:
        return run
    queued_ms = milliseconds_since(accepted_at(run, claim.request), run.started_at)
    deps.telemetry.queue_waited(claim.request.priority.value, queued_ms / 1000)
    return run.model_copy(update={"timings": run.timings.model_copy(update={"queued_ms": queued_ms})})


@asynccontextmanager
async def claimed_when_free(deps: Deps, key: RunKey, slot: Slot | None) -> AsyncIterator[Claim | None]:
    """Claim a run for the block, after its present holder if need be; None when it ended or is gone.

    A suspect is claimed when it is this process's only one, so that what kills processes kills few others' tries.
    """
    try:
        claim = await _claim_when_free(deps, key, slot, alone=False)
    except RunSuspected:
        claim, is_suspect = None, True
    else:
        is_suspect = False
    if not is_suspect:
        yield claim
        return
    with _lent(slot):
        await deps.suspects.acquire()
    try:
        yield await _claim_when_free(deps, key, slot, alone=True)
    finally:
        deps.suspects.release()


async def _claim_when_free(deps: Deps, key: RunKey, slot: Slot | None, *, alone: bool) -> Claim | None:
    """Wait out the lease of a holder that was killed: the job of a run must not end before the run does."""
    async with deps.notifier.watch(key) as watch:
        while True:
            claim = await claim_run(deps, key, alone=alone)
            if claim is not None:
                return claim
            stored = await deps.store.get(key)
            if stored is None or stored.status.ended:
                return None
            with _lent(slot):
                await watch.changed(deps.policy.lease_s / 3)


def _lent(slot: Slot | None) -> AbstractContextManager[None]:
    return nullcontext() if slot is None else slot.lent()
