"""Put stored runs in line."""

from app.domain.request import Priority
from app.domain.run import Run
from app.ports import RunKey
from app.runs.deps import Deps

JOB_MARGIN_S = 10.0


async def enqueue(deps: Deps, key: RunKey, run: Run, priority: Priority) -> None:
    """Put a stored run in line; its job may take a little longer than the run, which ends itself at its deadline.

    A run that waits already keeps its place. Raises StoreUnavailable.
    """
    left = deps.policy.run_timeout_ms / 1000
    if run.deadline_at is not None:
        left = max((run.deadline_at - deps.clock.now()).total_seconds(), 0.0)
    await deps.queue.enqueue(key, priority, left + JOB_MARGIN_S)
