"""Accept a request, store its run, and execute it inline or hand it to the queue."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.errors import CapacityReduced, IdempotencyConflict, NotFound, StoreUnavailable
from app.domain.request import MultiScoreRequest, ScoreRequest, StorePolicy
from app.domain.run import RunStatus
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
from app.runs.execute import execute_unstored
from app.runs.inline import Submitted, answered, execute_inline, join_run, submitted
from app.runs.queueing import caller_digest, enqueue

__all__ = ["Submitted", "submit_run", "submit_runs"]


@dataclass(frozen=True, slots=True)
class _Submission:
    """One POST: who asks for what, and how it is to be answered."""

    tenant: str
    caller: bytes
    body: ScoreRequest
    queued: bool
    wait_s: float | None
    idempotency_key: str | None

    def wait_limit_s(self, deps: Deps) -> float:
        """How long this caller is kept waiting at most."""
        return deps.policy.inline_wait_s if self.wait_s is None else min(self.wait_s, deps.policy.inline_wait_s)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A run that is in the store: new (claimed, when it is executed here), or as it stood there `before`."""

    new: NewRun
    before: StoredRun | None
    claim: Claim | None

    @property
    def is_new(self) -> bool:
        """Whether this request stored it."""
        return self.before is None

    @property
    def status(self) -> RunStatus:
        """Where the run stands."""
        return self.new.run.status if self.before is None else self.before.status


async def submit_run(
    deps: Deps,
    tenant: str,
    scorer_id: str,
    body: ScoreRequest,
    *,
    caller: bytes,
    queued: bool,
    wait_s: float | None,
    idempotency_key: str | None,
) -> Submitted | None:
    """Score one text with one scorer; None when the traffic is not sampled.

    `queued` answers at once, or when `wait_s` is over; otherwise the answer comes when the run ended or `wait_s` (at
    most the configured inline wait) is over, and then the run goes on in the queue. `caller` is what tells this caller
    from others, who take turns in the queue. Raises InvalidRequest, NotFound,
    IdempotencyConflict, NotConfigured, CapacityReduced and StoreUnavailable.
    """
    accepted = await accept(deps, tenant, body, scorer_id)
    submission = _Submission(tenant, caller, body, queued, wait_s, idempotency_key)
    refuse_unkept(body, queued=queued, idempotency_key=idempotency_key)
    if not is_sampled(body.sampling):
        return None
    async with _turn(deps, submission):
        (run_id,) = await _settled_run_ids(deps, submission, scorer_id, (body.run_id or new_run_id(),))
        run = await _store(deps, submission, run_id, accepted)
    await _line_up(deps, [run])
    return await _carry_on(deps, submission, run)


async def submit_runs(
    deps: Deps,
    tenant: str,
    body: MultiScoreRequest,
    *,
    caller: bytes,
    queued: bool,
    wait_s: float | None,
    idempotency_key: str | None,
) -> list[Submitted] | None:
    """Score one text with several scorers, concurrently; as submit_run, one Submitted per scorer in order."""
    accepted = await accept_many(deps, tenant, body)
    submission = _Submission(tenant, caller, body, queued, wait_s, idempotency_key)
    refuse_unkept(body, queued=queued, idempotency_key=idempotency_key)
    if not is_sampled(body.sampling):
        return None
    async with _turn(deps, submission):
        run_ids = await _settled_run_ids(deps, submission, None, run_ids_for(body, accepted))
        runs = await _store_all(deps, submission, run_ids, accepted)
    await _line_up(deps, runs)
    # Every run is seen to its end before an error is told, so that none goes on behind the caller's back.
    outcomes = await asyncio.gather(*(_carry_on(deps, submission, run) for run in runs), return_exceptions=True)
    return [_told(run, outcome) for run, outcome in zip(runs, outcomes, strict=True)]


def _turn(deps: Deps, submission: _Submission) -> contextlib.AbstractAsyncContextManager[None]:
    return deps.accepting.turn() if submission.queued else contextlib.nullcontext()


async def _store_all(
    deps: Deps, submission: _Submission, run_ids: tuple[str, ...], accepted: list[Accepted]
) -> list[_Stored]:
    """Store all runs or none: when one can't be, those that were made for this request are deleted again."""
    group = run_ids[0] if len(run_ids) > 1 else ""
    outcomes = await asyncio.gather(
        *(_store(deps, submission, run_id, item, group) for run_id, item in zip(run_ids, accepted, strict=True)),
        return_exceptions=True,
    )
    stored = [outcome for outcome in outcomes if isinstance(outcome, _Stored)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if failures:
        await _unstore(deps, stored)
        raise failures[0]
    return stored


def _told(run: _Stored, outcome: Submitted | BaseException) -> Submitted:
    """Return what became of one run of several: that one was deleted meanwhile must not hide the others."""
    if isinstance(outcome, NotFound):
        return answered(run.new.run.model_copy(update={"status": RunStatus.CANCELLED}))
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _settled_run_ids(
    deps: Deps, submission: _Submission, scorer_id: str | None, run_ids: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the ids under which these runs stand, or shall: those of the first request with the Idempotency-Key."""
    # Who names a wait, however short, may be left to the queue when it is over.
    if submission.queued or submission.wait_s is not None:
        await _check_room(deps, submission, run_ids)
    if submission.idempotency_key is None:
        return run_ids
    digest = fingerprint(submission.body, scorer_id)
    remembered = await deps.store.remember(submission.tenant, submission.idempotency_key, digest, run_ids)
    other_ids = submission.body.run_id is not None and remembered.run_ids != run_ids
    if remembered.fingerprint != digest or other_ids:
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


async def _store(deps: Deps, submission: _Submission, run_id: str, accepted: Accepted, group: str = "") -> _Stored:
    """Store a run, or find the one that stands under its id; raises IdempotencyConflict when that is another one."""
    body, queued = submission.body, submission.queued
    status = RunStatus.QUEUED if queued else RunStatus.RUNNING
    caller = await caller_digest(deps, submission.tenant, submission.caller)
    key = submission.idempotency_key
    new = new_run(deps, submission.tenant, run_id, body, accepted, status, caller, key, group)
    if body.store is StorePolicy.NONE:
        if body.run_id is not None and await deps.store.get(new.key) is not None:
            raise IdempotencyConflict("This runId belongs to a run that is kept; use a new one")
        return _Stored(new, None, None)
    created, claim = await deps.store.create(new, claim_lease_s=None if queued else deps.policy.lease_s)
    if created.new:
        return _Stored(new, None, claim)
    if created.stored.fingerprint != new.fingerprint:
        raise IdempotencyConflict("This runId was used with another body; use a new one")
    return _Stored(new, created.stored, None)


async def _line_up(deps: Deps, runs: Sequence[_Stored]) -> None:
    """Put all that is queued in line, or nothing: a repeat too, since the first request may have died before."""
    outcomes = await asyncio.gather(
        *(
            enqueue(deps, run.new.key, run.new.run, run.new.request, if_room=run.is_new)
            for run in runs
            if run.status is RunStatus.QUEUED
        ),
        return_exceptions=True,
    )
    failures = [outcome for outcome in outcomes if outcome is not None]
    if failures:
        await _unstore(deps, runs)
        raise failures[0]


async def _unstore(deps: Deps, runs: Sequence[_Stored]) -> None:
    # What the caller is told was not accepted must not be found later, unless another request was told that it was.
    for run in runs:
        with contextlib.suppress(StoreUnavailable):
            if run.is_new and await deps.store.withdraw(run.new.key):
                await deps.queue.remove(run.new.key)


async def _carry_on(deps: Deps, submission: _Submission, run: _Stored) -> Submitted:
    """Execute a stored run or join it, and return it as it stands when the caller is answered."""
    if submission.body.store is StorePolicy.NONE:
        return answered(await execute_unstored(deps, Claim(run.new.key, 0, run.new.run, run.new.request)))
    if run.claim is not None:
        return await execute_inline(deps, run.claim, submission.wait_limit_s(deps))
    key, replayed = run.new.key, not run.is_new
    stored = run.before or StoredRun(run.new.run.model_dump_json().encode(), RunStatus.QUEUED, run.new.fingerprint)
    if stored.status.ended or (submission.queued and submission.wait_s is None):
        return submitted(key.run_id, stored, replayed=replayed)
    wait_s = submission.wait_limit_s(deps)
    return await join_run(deps, run.new, wait_s, take_over=not submission.queued, replayed=replayed)
