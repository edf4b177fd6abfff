"""Accept a request, store its run, and execute it inline or hand it to the queue."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import NamedTuple

from app.domain.errors import CapacityReduced, IdempotencyConflict, StoreUnavailable
from app.domain.request import Mode, MultiScoreRequest, Priority, ScoreRequest, StorePolicy
from app.domain.run import Run, RunStatus
from app.ports import Claim, NewRun, RunKey, StoredRun
from app.runs.accept import (
    Accepted,
    accept,
    accept_many,
    fingerprint,
    is_sampled,
    new_run,
    new_run_id,
    refuse_unkept,
    run_ids_for,
)
from app.runs.deps import Deps
from app.runs.execute import ClaimLost, claim_run, execute_run, execute_unstored
from app.runs.follow import get_run, wait_for_run

JOB_MARGIN_S = 10.0


class Submitted(NamedTuple):
    """A run as it stands when the caller is answered; `body` is the JSON of the Run."""

    run_id: str
    body: bytes
    status: RunStatus
    replayed: bool


@dataclass(frozen=True, slots=True)
class _Submission:
    """One POST: who asks for what, and how it is to be answered."""

    tenant: str
    body: ScoreRequest
    queued: bool
    wait_s: float | None
    idempotency_key: str | None


async def submit_run(
    deps: Deps,
    tenant: str,
    scorer_id: str,
    body: ScoreRequest,
    *,
    queued: bool,
    wait_s: float | None,
    idempotency_key: str | None,
) -> Submitted | None:
    """Score one text with one scorer; None when the traffic is not sampled.

    `queued` answers at once, or when `wait_s` is over; otherwise the answer comes when the run ended or `wait_s` (at
    most the configured inline wait) is over, and then the run goes on in the queue. Raises InvalidRequest, NotFound,
    IdempotencyConflict, NotConfigured, CapacityReduced and StoreUnavailable.
    """
    accepted = accept(deps, body, scorer_id)
    submission = _Submission(tenant, body, queued, wait_s, idempotency_key)
    refuse_unkept(body, queued=queued, idempotency_key=idempotency_key)
    if not is_sampled(body.sampling):
        return None
    digest = fingerprint(body, scorer_id)
    (run_id,) = await _settled_run_ids(deps, submission, digest, (body.run_id or new_run_id(),))
    return await _submit(deps, submission, run_id, accepted)


async def submit_runs(
    deps: Deps,
    tenant: str,
    body: MultiScoreRequest,
    *,
    queued: bool,
    wait_s: float | None,
    idempotency_key: str | None,
) -> list[Submitted] | None:
    """Score one text with several scorers, concurrently; as submit_run, one Submitted per scorer in order."""
    accepted = accept_many(deps, body)
    submission = _Submission(tenant, body, queued, wait_s, idempotency_key)
    refuse_unkept(body, queued=queued, idempotency_key=idempotency_key)
    if not is_sampled(body.sampling):
        return None
    run_ids = await _settled_run_ids(deps, submission, fingerprint(body, None), run_ids_for(body, accepted))
    submitting = [
        asyncio.create_task(_submit(deps, submission, run_id, item))
        for run_id, item in zip(run_ids, accepted, strict=True)
    ]
    # Every run is seen to its end before an error is told, so that none goes on behind the caller's back.
    outcomes = await asyncio.gather(*submitting, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [task.result() for task in submitting]


async def _settled_run_ids(
    deps: Deps, submission: _Submission, digest: str, run_ids: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the ids under which these runs stand, or shall: those of the first request with the Idempotency-Key."""
    if submission.queued:
        await _check_room(deps, submission, run_ids)
    if submission.idempotency_key is None:
        return run_ids
    remembered = await deps.store.remember(submission.tenant, submission.idempotency_key, digest, run_ids)
    if remembered.fingerprint != digest:
        raise IdempotencyConflict("This Idempotency-Key was used with another body; use a new key")
    return remembered.run_ids


async def _check_room(deps: Deps, submission: _Submission, run_ids: tuple[str, ...]) -> None:
    """Raise CapacityReduced when the queue is full and these runs are new; a repeat is answered all the same."""
    try:
        await deps.queue.check_room()
    except CapacityReduced:
        key, tenant = submission.idempotency_key, submission.tenant
        if key is not None and await deps.store.recall(tenant, key) is not None:
            return
        if submission.body.run_id is None or await deps.store.get(RunKey(tenant, run_ids[0])) is None:
            raise


async def _submit(deps: Deps, submission: _Submission, run_id: str, accepted: Accepted) -> Submitted:
    body, queued, wait_s = submission.body, submission.queued, submission.wait_s
    status = RunStatus.QUEUED if queued else RunStatus.RUNNING
    new = new_run(deps, submission.tenant, run_id, body, accepted, status, submission.idempotency_key)
    if body.store is StorePolicy.NONE:
        run = await execute_unstored(deps, Claim(key=new.key, token=0, run=new.run, request=new.request))
        return _answered(run, replayed=False)
    created, claim = await deps.store.create(new, claim_lease_s=None if queued else deps.policy.lease_s)
    if not created.new and created.stored.fingerprint != new.fingerprint:
        raise IdempotencyConflict("This runId was used with another body; use a new one")
    if created.new and claim is not None:
        return await _execute_inline(deps, claim, _inline_wait(deps, wait_s))
    if created.new:
        await _enqueue_new(deps, new)
    elif created.stored.status is RunStatus.QUEUED:
        # The first request may have died before its run reached the queue; enqueueing twice is harmless.
        await enqueue(deps, new.key, new.run, body.priority)
    if created.stored.status.ended or (queued and wait_s is None):
        return submitted(run_id, created.stored, replayed=not created.new)
    return await _join(deps, new, _inline_wait(deps, wait_s), take_over=not queued, replayed=not created.new)


def _inline_wait(deps: Deps, wait_s: float | None) -> float:
    return deps.policy.inline_wait_s if wait_s is None else min(wait_s, deps.policy.inline_wait_s)


async def _execute_inline(deps: Deps, claim: Claim, wait_s: float, *, replayed: bool = False) -> Submitted:
    executing = asyncio.create_task(execute_run(deps, claim, Mode.INLINE))
    try:
        await asyncio.wait({executing}, timeout=wait_s)
    finally:
        if not executing.done():
            await _hand_over(deps, claim, executing)
    try:
        if not executing.cancelled():
            return _answered(executing.result(), replayed=replayed)
    except ClaimLost:
        pass
    return submitted(claim.key.run_id, await get_run(deps, claim.key), replayed=replayed)


async def _hand_over(deps: Deps, claim: Claim, executing: asyncio.Task[Run]) -> None:
    """Let the queue go on with a run that this request no longer waits for; finished steps come from the cache."""
    try:
        # First the job, which waits for this claim to end, so that the run is never without either.
        await enqueue(deps, claim.key, claim.run, claim.request.priority)
    finally:
        executing.cancel()
        await asyncio.wait({executing})


async def _join(deps: Deps, new: NewRun, wait_s: float, *, take_over: bool, replayed: bool) -> Submitted:
    """Wait for a run that somebody else executes; with take_over, execute it here when their lease has ended."""
    until = deps.clock.monotonic() + wait_s
    while True:
        claim = await claim_run(deps, new.key) if take_over else None
        left = max(until - deps.clock.monotonic(), 0.0)
        if claim is not None:
            return await _execute_inline(deps, claim, left, replayed=replayed)
        stored = await wait_for_run(deps, new.key, min(left, deps.policy.lease_s) if take_over else left)
        if stored.status.ended or deps.clock.monotonic() >= until:
            return submitted(new.key.run_id, stored, replayed=replayed)


async def _enqueue_new(deps: Deps, new: NewRun) -> None:
    try:
        await enqueue(deps, new.key, new.run, new.request.priority)
    except StoreUnavailable:
        # What the caller is told was not accepted must not be found later.
        with contextlib.suppress(StoreUnavailable):
            await deps.store.delete(new.key)
        raise


async def enqueue(deps: Deps, key: RunKey, run: Run, priority: Priority) -> None:
    """Put a stored run in line; its job may take a little longer than the run, which ends itself at its deadline."""
    left = deps.policy.run_timeout_ms / 1000
    if run.deadline_at is not None:
        left = max((run.deadline_at - deps.clock.now()).total_seconds(), 0.0)
    await deps.queue.enqueue(key, priority, left + JOB_MARGIN_S)


def submitted(run_id: str, stored: StoredRun, *, replayed: bool) -> Submitted:
    """Return a stored run as an answer."""
    return Submitted(run_id, stored.body, stored.status, replayed)


def _answered(run: Run, *, replayed: bool) -> Submitted:
    return Submitted(run.run_id, run.model_dump_json().encode(), run.status, replayed)
