"""Look after runs of which nobody has told anything for a while: every run ends, whatever became of its job.

Each process sweeps, one at a time among all. A run without a job in the queue (its API was killed, or its job lost)
gets a new one; a run past its deadline is ended. All others are looked at again later.
"""

import asyncio
from collections.abc import Iterable, Iterator

import structlog

from app.domain.errors import StoreUnavailable
from app.domain.run import Run
from app.ports import RunKey
from app.runs.deps import Deps
from app.runs.overdue import end_overdue, is_late
from app.runs.queueing import enqueue
from app.runs.recovery import Reason, tell_recovery

log = structlog.get_logger()

SWEEP_S = 5.0
RETRY_S = 1.0
PUT_OFF_S = 30.0
# One look at Redis takes so many runs; a sweep ends after so many looks and acts on so many runs at once.
BATCH = 500
BATCHES = 20
AT_ONCE = 16


async def keep_sweeping(deps: Deps) -> None:
    """See that the store is there, and sweep when it is this process's turn, until cancelled."""
    pause_s = min(SWEEP_S, deps.policy.lease_s / 3)
    while True:
        try:
            await _beat(deps)
        except StoreUnavailable as error:
            _lose(deps, error)
            await asyncio.sleep(min(RETRY_S, pause_s))
            continue
        except Exception:
            # Without a sweeper lost runs would stay lost until somebody asks for them.
            log.exception("sweep_crashed")
        await asyncio.sleep(pause_s)


async def _beat(deps: Deps) -> None:
    if not deps.steadiness.is_steady:
        await deps.store.ping()
        deps.steadiness.seen()
        return
    is_our_turn = await deps.store.may_sweep(SWEEP_S)
    deps.steadiness.seen()
    if is_our_turn:
        await sweep(deps)


def _lose(deps: Deps, error: StoreUnavailable) -> None:
    deps.steadiness.lost()
    log.warning("sweep_failed", error=error.code, cause=type(error.__cause__).__name__)


async def sweep(deps: Deps) -> None:
    """Look after the runs that are due, at most BATCH x BATCHES of them. Raises StoreUnavailable."""
    for _ in range(BATCHES):
        due = await deps.store.due(BATCH, PUT_OFF_S)
        late = {run.key for run in due if is_late(deps, run.deadline_at)}
        lost = await deps.queue.missing([run.key for run in due if run.key not in late])
        deps.steadiness.seen()
        await _look_after(deps, [*((key, Reason.OVERDUE) for key in late), *((key, Reason.JOB_LOST) for key in lost)])
        if len(due) < BATCH or not deps.steadiness.is_steady:
            return


async def _look_after(deps: Deps, runs: Iterable[tuple[RunKey, Reason]]) -> None:
    waiting = iter(runs)
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(_save_all(deps, waiting))


async def _save_all(deps: Deps, waiting: Iterator[tuple[RunKey, Reason]]) -> None:
    for key, reason in waiting:
        try:
            await (end_overdue(deps, key) if reason is Reason.OVERDUE else _put_in_line(deps, key))
            deps.steadiness.seen()
        except StoreUnavailable as error:
            # What was not done is due again later.
            _lose(deps, error)
            return
        except Exception:
            # One run that can't be read must not keep the sweeper from the others.
            log.exception("run_not_looked_after", run_id=key.run_id)


async def _put_in_line(deps: Deps, key: RunKey) -> None:
    stored = await deps.store.get(key)
    request = await deps.store.get_request(key)
    if stored is None or stored.status.ended or request is None:
        return
    await enqueue(deps, key, Run.model_validate_json(stored.body), request)
    tell_recovery(deps, Reason.JOB_LOST, key.run_id)
