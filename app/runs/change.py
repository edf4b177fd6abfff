"""Change runs from outside: cancel, retry, delete."""

from datetime import timedelta

from app.domain.errors import NotFound, RunConflict
from app.domain.run import Run, RunStatus, Timings, Usage
from app.ports import RunKey, StoredRun
from app.runs.deps import Deps
from app.runs.follow import get_run
from app.runs.queueing import enqueue

RETRYABLE = frozenset({RunStatus.FAILED, RunStatus.EXPIRED, RunStatus.CANCELLED})


async def cancel_run(deps: Deps, key: RunKey) -> StoredRun:
    """End a queued or running run as cancelled and return it; an ended run is returned unchanged. Raises NotFound."""
    stored = await deps.store.cancel(key, deps.clock.now())
    if stored is None:
        raise NotFound("There is no run with this id, or it is no longer kept")
    await deps.queue.remove(key)
    return stored


async def retry_run(deps: Deps, key: RunKey) -> StoredRun:
    """Queue a failed, expired or cancelled run again, with a new deadline of the same length.

    Raises NotFound, RunConflict when the run did not end so or its texts are not kept, CapacityReduced.
    """
    stored = await get_run(deps, key)
    if stored.status is RunStatus.QUEUED and Run.model_validate_json(stored.body).attempts:
        return await _queued_still(deps, key, stored)
    if stored.status not in RETRYABLE:
        raise RunConflict("Only a failed, expired or cancelled run can be run again")
    request = await deps.store.get_request(key)
    if request is None:
        raise RunConflict("This run's texts were not kept, so it can't be run again; submit it anew")
    await deps.queue.check_room()
    run = _queued_again(deps, Run.model_validate_json(stored.body), request.timeout_ms)
    if not await deps.store.requeue(key, run):
        raise RunConflict("The run changed meanwhile; look at it and try again")
    await deps.queue.remove(key)
    await enqueue(deps, key, run, request)
    return await get_run(deps, key)


async def _queued_still(deps: Deps, key: RunKey, stored: StoredRun) -> StoredRun:
    """A retry before may have died between the store and the queue; a run that waits in line keeps its place."""
    request = await deps.store.get_request(key)
    if request is not None:
        await enqueue(deps, key, Run.model_validate_json(stored.body), request)
    return stored


def _queued_again(deps: Deps, run: Run, timeout_ms: int) -> Run:
    now = deps.clock.now()
    return Run(
        run_id=run.run_id,
        scorer_id=run.scorer_id,
        scorer_version=run.scorer_version,
        status=RunStatus.QUEUED,
        scale=run.scale,
        range=run.range,
        direction=run.direction,
        threshold=run.threshold,
        model=run.model,
        models=run.models,
        usage=Usage(),
        timings=Timings(),
        metadata=run.metadata,
        attempts=run.attempts,
        history=run.history,
        created_at=run.created_at,
        deadline_at=now + timedelta(milliseconds=timeout_ms),
        expires_at=now + timedelta(seconds=deps.policy.run_ttl_s),
    )


async def delete_run(deps: Deps, key: RunKey) -> None:
    """Remove the run, its job and the replies it cached; raises NotFound."""
    cache_keys = await deps.store.delete(key)
    if cache_keys:
        await deps.cache.forget(cache_keys)
    await deps.queue.remove(key)
    if cache_keys is None:
        raise NotFound("There is no run with this id, or it is no longer kept")
