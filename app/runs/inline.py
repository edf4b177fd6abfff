"""Inline runs: executed while the caller waits, handed over when the wait is over, joined by a repeated request."""

import asyncio
from typing import NamedTuple

from app.domain.request import Mode
from app.domain.run import Run, RunStatus
from app.ports import Claim, NewRun, RunKey, RunSuspected, StoredRun
from app.runs.claiming import claim_run
from app.runs.deps import Deps
from app.runs.execute import execute_run
from app.runs.follow import get_run, wait_for_run
from app.runs.lease import ClaimLost
from app.runs.queueing import enqueue


class Submitted(NamedTuple):
    """A run as it stands when the caller is answered; `body` is the JSON of the Run."""

    run_id: str
    body: bytes
    status: RunStatus
    replayed: bool


def submitted(run_id: str, stored: StoredRun, *, replayed: bool) -> Submitted:
    """Return a stored run as an answer."""
    return Submitted(run_id, stored.body, stored.status, replayed)


def answered(run: Run, *, replayed: bool = False) -> Submitted:
    """Return a run at hand as an answer."""
    return Submitted(run.run_id, run.model_dump_json().encode(), run.status, replayed)


async def execute_inline(deps: Deps, claim: Claim, wait_s: float, *, replayed: bool = False) -> Submitted:
    """Execute a claimed run for a caller who waits; after wait_s seconds the queue goes on with it.

    Raises NotFound when the run is deleted meanwhile, StoreUnavailable when its end could not be written yet.
    """
    executing = asyncio.create_task(execute_run(deps, claim, Mode.INLINE))
    try:
        await asyncio.wait({executing}, timeout=wait_s)
    finally:
        if not executing.done():
            await _hand_over(deps, claim, executing)
    try:
        if not executing.cancelled():
            return answered(executing.result(), replayed=replayed)
    except ClaimLost:
        pass
    return submitted(claim.key.run_id, await get_run(deps, claim.key), replayed=replayed)


async def _hand_over(deps: Deps, claim: Claim, executing: asyncio.Task[Run]) -> None:
    """Let the queue go on with a run that this request no longer waits for; finished steps come from the cache."""
    try:
        # First the job, which waits for this claim to end, so that the run is never without either.
        await enqueue(deps, claim.key, claim.run, claim.request)
    finally:
        executing.cancel()
        await asyncio.wait({executing})


async def join_run(deps: Deps, new: NewRun, wait_s: float, *, take_over: bool, replayed: bool) -> Submitted:
    """Wait for a run that somebody else executes; with take_over, execute it here when their lease has ended."""
    until = deps.clock.monotonic() + wait_s
    while True:
        claim = await _taken_over(deps, new.key) if take_over else None
        left = max(until - deps.clock.monotonic(), 0.0)
        if claim is not None:
            return await execute_inline(deps, claim, left, replayed=replayed)
        stored = await wait_for_run(deps, new.key, min(left, deps.policy.lease_s) if take_over else left)
        if stored.status.ended or deps.clock.monotonic() >= until:
            return submitted(new.key.run_id, stored, replayed=replayed)


async def _taken_over(deps: Deps, key: RunKey) -> Claim | None:
    try:
        return await claim_run(deps, key)
    except RunSuspected:
        # A worker executes it apart from others: not here, beside every other caller's run.
        return None
