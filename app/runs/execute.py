"""Execute a claimed run: the one function that the inline route and the worker both await."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from app.domain.errors import StoreUnavailable
from app.domain.request import Mode, RunRequest, StorePolicy
from app.domain.run import Run, RunStatus, Step
from app.judge.answers import PRIVATE_PREFIX
from app.ports import Claim, RunKey, Slot, StepEnd
from app.runs.deps import Deps
from app.runs.judging import ClaimLost, judge_until_deadline
from app.runs.kept import kept

log = structlog.get_logger()

FINISH_PAUSE_S = 0.5


@dataclass(slots=True)
class _Judged:
    """What came of judging: the run, the keys its answers may be cached under, a step that is not written yet."""

    run: Run
    cache_keys: list[str] = field(default_factory=list)
    keys_written: int = 0
    last_step: StepEnd | None = None

    def keys_to_forget(self, policy: StorePolicy) -> list[str]:
        """The keys whose answers end with the run: those that nobody else may use, or all when no texts are kept."""
        if policy is StorePolicy.RESULT:
            return self.cache_keys
        return [key for key in self.cache_keys if key.startswith(PRIVATE_PREFIX)]

    @property
    def unwritten_keys(self) -> list[str]:
        """The keys that the store does not know of yet."""
        return self.cache_keys[self.keys_written :]


class _NotWritten(StoreUnavailable):
    """The end state of a run that was judged could not be written."""


async def execute_queued_run(deps: Deps, key: RunKey, slot: Slot | None = None) -> None:
    """Claim a queued run and execute it; quiet when there is nothing to claim. What a worker's job does.

    Keeps trying to write the end state while the store is away, since the answers are paid for.
    """
    claim = await _claim_when_free(deps, key)
    if claim is None:
        return
    with contextlib.suppress(ClaimLost):
        await execute_run(deps, claim, Mode.QUEUED, patience_s=deps.policy.finish_patience_s, slot=slot)


async def _claim_when_free(deps: Deps, key: RunKey) -> Claim | None:
    """Claim the run, after its present holder if need be: a holder that was killed keeps its lease for a while.

    The job of a run that nobody else carries on must not end before the run does.
    """
    async with deps.notifier.watch(key) as watch:
        while True:
            claim = await claim_run(deps, key)
            if claim is not None:
                return claim
            stored = await deps.store.get(key)
            if stored is None or stored.status.ended:
                return None
            await watch.changed(deps.policy.lease_s / 3)


async def claim_run(deps: Deps, key: RunKey) -> Claim | None:
    """Take a run that waits, or whose holder's lease ended, and mark it as running; None when it is not to be had."""
    claim = await deps.store.claim(key, deps.policy.lease_s)
    if claim is None:
        return None
    run = claim.run.model_copy(update={"status": RunStatus.RUNNING, "attempts": claim.run.attempts + 1})
    if run.started_at is None:
        run = _started(deps, run, claim.request)
    with contextlib.suppress(StoreUnavailable):
        await deps.store.checkpoint(claim, run, None)
    return replace(claim, run=run)


def _started(deps: Deps, run: Run, request: RunRequest) -> Run:
    now = deps.clock.now()
    queued_ms = _milliseconds_since(_accepted_at(run, request), now)
    deps.telemetry.queue_waited(request.priority.value, queued_ms / 1000)
    timings = run.timings.model_copy(update={"queued_ms": queued_ms})
    return run.model_copy(update={"started_at": now, "timings": timings})


async def execute_run(
    deps: Deps, claim: Claim, mode: Mode, *, patience_s: float = 0.0, slot: Slot | None = None
) -> Run:
    """Judge the claimed run and write its end state, once; returns the run as it ended.

    Raises ClaimLost when somebody else decides over the run now, StoreUnavailable when the end state could not be
    written within patience_s; it is then tried on in the background. When cancelled, gives the run back as queued with
    the steps it has.
    """
    with _telemetry(deps, claim.run, mode) as outcome:
        judged = _Judged(claim.run)
        try:
            await _judge_while_held(deps, claim, judged, slot)
            await _finish(deps, claim, judged, patience_s)
        except _NotWritten:
            _finish_later(deps, claim, judged)
            raise
        except asyncio.CancelledError:
            await _give_back(deps, claim, judged)
            raise
        except ClaimLost:
            await _forget_answers_of_the_ended(deps, claim, judged)
            raise
        outcome.append(judged.run)
    return judged.run


async def execute_unstored(deps: Deps, claim: Claim) -> Run:
    """Judge a run that is kept nowhere (`store: none`)."""

    async def on_step(run: Run, step: Step) -> None:
        """Nothing is kept."""

    with _telemetry(deps, claim.run, Mode.INLINE) as outcome:
        run = _ended(deps, await judge_until_deadline(deps, claim, on_step, [], keeper=None), claim.request)
        outcome.append(run)
    return run


@contextlib.contextmanager
def _telemetry(deps: Deps, run: Run, mode: Mode) -> Iterator[list[Run]]:
    deps.telemetry.run_started(run.scorer_id, mode)
    started = deps.clock.monotonic()
    outcome: list[Run] = []
    try:
        yield outcome
    finally:
        if outcome:
            _tell_end(deps, outcome[0], mode, deps.clock.monotonic() - started)
        else:
            deps.telemetry.run_left(run.scorer_id, mode)
            log.info("run_left", run_id=run.run_id, scorer=run.scorer_id, mode=mode)


def _tell_end(deps: Deps, run: Run, mode: Mode, seconds: float) -> None:
    unscaled = None if run.score is None else run.score / run.scale
    deps.telemetry.run_finished(run.scorer_id, mode, run.status, seconds, unscaled)
    error = None if run.error is None else run.error.code
    log.info("run_finished", run_id=run.run_id, scorer=run.scorer_id, mode=mode, status=run.status, error=error)


async def _judge_while_held(deps: Deps, claim: Claim, judged: _Judged, slot: Slot | None) -> None:
    policy = claim.request.store

    async def on_step(run: Run, step: Step) -> None:
        if step is Step.GENERATE_REASON:
            # The end follows at once and is written together with it.
            judged.last_step = StepEnd(step.value, kept(run, policy))
            return
        # A partial result that can't be written now is no reason to stop: the end state carries all of it.
        with contextlib.suppress(StoreUnavailable):
            if not await deps.store.checkpoint(claim, kept(run, policy), step.value, judged.unwritten_keys):
                raise ClaimLost
            judged.keys_written = len(judged.cache_keys)

    keeper = asyncio.create_task(_keep_lease(deps, claim))
    try:
        run = await judge_until_deadline(deps, claim, on_step, judged.cache_keys, keeper, slot)
    finally:
        keeper.cancel()
    judged.run = _ended(deps, run, claim.request)


async def _keep_lease(deps: Deps, claim: Claim) -> None:
    """Renew the lease until the claim is lost, which a change of the run (cancel, delete) tells at once."""
    async with deps.notifier.watch(claim.key) as watch:
        while True:
            await watch.changed(deps.policy.lease_s / 3)
            with contextlib.suppress(StoreUnavailable):
                if not await deps.store.renew(claim, deps.policy.lease_s):
                    return


def _accepted_at(run: Run, request: RunRequest) -> datetime:
    """When the run was accepted, or accepted again by a retry, which gives it a new deadline."""
    if run.deadline_at is None:
        return run.created_at
    return run.deadline_at - timedelta(milliseconds=request.timeout_ms)


def _milliseconds_since(start: datetime, now: datetime) -> float:
    return round(max((now - start).total_seconds(), 0.0) * 1000, 3)


def _ended(deps: Deps, run: Run, request: RunRequest) -> Run:
    now = deps.clock.now()
    total_ms = _milliseconds_since(_accepted_at(run, request), now)
    timings = run.timings.model_copy(update={"total_ms": total_ms})
    return run.model_copy(update={"completed_at": now, "timings": timings})


async def _finish(deps: Deps, claim: Claim, judged: _Judged, patience_s: float) -> None:
    give_up = deps.clock.monotonic() + patience_s
    while True:
        try:
            written = await deps.store.finish(
                claim,
                kept(judged.run, claim.request.store),
                cache_keys=judged.unwritten_keys,
                keep_request=claim.request.store is StorePolicy.FULL,
                last_step=judged.last_step,
            )
            break
        except StoreUnavailable as error:
            if deps.clock.monotonic() >= give_up:
                raise _NotWritten from error
            await asyncio.sleep(FINISH_PAUSE_S)
    if not written:
        raise ClaimLost
    await _forget(deps, judged.keys_to_forget(claim.request.store))


def _finish_later(deps: Deps, claim: Claim, judged: _Judged) -> None:
    """Go on trying to write a run that was judged while the store was away: its answers are paid for."""

    async def finish() -> None:
        with contextlib.suppress(ClaimLost, StoreUnavailable):
            await _finish(deps, claim, judged, deps.policy.finish_patience_s)
            log.info("run_finished_late", run_id=claim.run.run_id, status=judged.run.status)

    task = asyncio.create_task(finish())
    deps.finishing.add(task)
    task.add_done_callback(deps.finishing.discard)


async def _give_back(deps: Deps, claim: Claim, judged: _Judged) -> None:
    # The lease would end by itself; giving back at once only saves the next worker the wait.
    with contextlib.suppress(StoreUnavailable):
        await asyncio.shield(deps.store.release(claim, judged.unwritten_keys))


async def _forget_answers_of_the_ended(deps: Deps, claim: Claim, judged: _Judged) -> None:
    """Forget what ends with a run that was cancelled, or all of a deleted one; who took a run over goes on with it."""
    with contextlib.suppress(StoreUnavailable):
        stored = await deps.store.get(claim.key)
        if stored is None:
            await _forget(deps, judged.cache_keys)
        elif stored.status.ended:
            await _forget(deps, judged.keys_to_forget(claim.request.store))


async def _forget(deps: Deps, cache_keys: list[str]) -> None:
    if cache_keys:
        await deps.cache.forget(cache_keys)
