"""Look at runs: now, when they end, and step by step."""

from collections.abc import AsyncIterator

from app.domain.errors import NotFound
from app.domain.run import RunEvent
from app.ports import ListQuery, Page, RunKey, StoredRun
from app.runs.deps import Deps
from app.runs.overdue import end_if_overdue

RECHECK_S = 5.0
PING_S = 15.0


async def get_run(deps: Deps, key: RunKey) -> StoredRun:
    """Return the run as it stands; raises NotFound. A run that nobody ended at its deadline is ended here."""
    stored = await deps.store.get(key)
    if stored is None:
        raise NotFound("There is no run with this id, or it is no longer kept")
    return await end_if_overdue(deps, key, stored)


async def wait_for_run(deps: Deps, key: RunKey, wait_s: float) -> StoredRun:
    """Return the run when it ended, or as it stands after wait_s seconds; raises NotFound."""
    until = deps.clock.monotonic() + wait_s
    async with deps.notifier.watch(key) as watch:
        while True:
            stored = await get_run(deps, key)
            left = until - deps.clock.monotonic()
            if stored.status.ended or left <= 0:
                return stored
            # A wake-up may be lost with its connection, so look again now and then.
            await watch.changed(min(left, RECHECK_S))


async def run_events(deps: Deps, key: RunKey, after: str | None) -> AsyncIterator[RunEvent | None]:
    """Yield each step as it ends and at last the run; None every PING_S seconds of silence.

    Raises NotFound at the first step, and ends quietly when the run is deleted meanwhile.
    """
    await get_run(deps, key)
    async with deps.notifier.watch(key, steps=True) as watch:
        silent_since = deps.clock.monotonic()
        while True:
            ended = await _is_over(deps, key)
            events = await deps.store.events(key, after)
            for event in events:
                after = event.id
                yield event
                if event.event == "run":
                    return
            if ended:
                return
            if events:
                silent_since = deps.clock.monotonic()
            elif deps.clock.monotonic() - silent_since >= PING_S:
                silent_since = deps.clock.monotonic()
                yield None
            await watch.changed(RECHECK_S)


async def _is_over(deps: Deps, key: RunKey) -> bool:
    try:
        return (await get_run(deps, key)).status.ended
    except NotFound:
        return True


async def list_runs(deps: Deps, query: ListQuery) -> Page:
    """Return a page of runs, newest first; raises InvalidRequest for a cursor that is not ours."""
    return await deps.store.list_page(query)
