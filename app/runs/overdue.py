"""A run always ends: one that is found past its deadline, with nobody at work on it, is ended by who finds it."""

from contextlib import suppress

from app.domain.request import Mode
from app.domain.run import Run
from app.ports import RunKey, StoredRun
from app.runs.deps import Deps
from app.runs.execute import claim_run, execute_run
from app.runs.judging import ClaimLost

LATE_S = 5.0


async def end_if_overdue(deps: Deps, key: RunKey, stored: StoredRun) -> StoredRun:
    """Return the run as it stands, `expired` when its deadline passed and no worker came to say so.

    That happens to runs whose job is lost: the worker was killed too often, or never started.
    """
    if stored.status.ended or not _is_overdue(deps, Run.model_validate_json(stored.body)):
        return stored
    claim = await claim_run(deps, key)
    if claim is None:
        return stored
    with suppress(ClaimLost):
        # Past its deadline a run is ended without a call.
        await execute_run(deps, claim, Mode.QUEUED)
    return await deps.store.get(key) or stored


def _is_overdue(deps: Deps, run: Run) -> bool:
    return run.deadline_at is not None and (deps.clock.now() - run.deadline_at).total_seconds() > LATE_S
