"""A run always ends: one that is found past its deadline, with nobody at work on it, is ended by who finds it."""

from contextlib import suppress
from datetime import datetime

from app.domain.request import Mode
from app.domain.run import Run, RunStatus
from app.ports import RunKey, StoredRun
from app.runs.claiming import claim_run
from app.runs.deps import Deps
from app.runs.execute import execute_run
from app.runs.lease import ClaimLost
from app.runs.recovery import Reason, tell_recovery

LATE_S = 5.0


async def end_if_overdue(deps: Deps, key: RunKey, stored: StoredRun) -> StoredRun:
    """Return the run as it stands, `expired` when its deadline passed and no worker came to say so.

    That happens to runs whose job is lost: the worker was killed too often, or never started.
    """
    if stored.status.ended or not is_late(deps, Run.model_validate_json(stored.body).deadline_at):
        return stored
    await end_overdue(deps, key)
    return await deps.store.get(key) or stored


async def end_overdue(deps: Deps, key: RunKey) -> None:
    """End a run that is past its deadline, unless somebody holds it. Raises StoreUnavailable."""
    # Past its deadline a run is ended without a call: there is nothing to suspect.
    claim = await claim_run(deps, key, alone=True)
    if claim is None:
        return
    if not is_late(deps, claim.run.deadline_at):
        # Somebody ended it and had it run again meanwhile: that is for its worker.
        await deps.store.release(claim)
        return
    with suppress(ClaimLost):
        run = await execute_run(deps, claim, Mode.QUEUED)
        if run.status is RunStatus.EXPIRED:
            tell_recovery(deps, Reason.OVERDUE, key.run_id)


def is_late(deps: Deps, deadline_at: datetime | None) -> bool:
    """Return whether a deadline passed so long ago that nobody can be expected any more."""
    return deadline_at is not None and (deps.clock.now() - deadline_at).total_seconds() > LATE_S
