"""Execute a claimed run: the one function that the inline route and the worker both await."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from app.domain.errors import ErrorCode, Internal, NotConfigured, RunExpired, StoreUnavailable
from app.domain.request import Mode, RunRequest, StorePolicy
from app.domain.run import Run, RunStatus, Step
from app.judge.answers import PRIVATE_PREFIX
from app.judge.execute import Judge, judge_run
from app.ports import Claim, RunKey, StepEnd
from app.runs.deps import Deps
from app.runs.kept import kept

log = structlog.get_logger()

FINISH_PAUSE_S = 0.5
REASON_MARGIN_S = 0.2


@dataclass(slots=True)
class _Judged:
    """What came of judging: the run, the keys its answers may be cached under, a step that is not written yet."""

    run: Run
    cache_keys: list[str] = field(default_factory=list)
    keys_written: int = 0
    last_step: StepEnd | None = None

    @property
    def unwritten_keys(self) -> list[str]:
        """The keys that the store does not know of yet."""
        return self.cache_keys[self.keys_written :]


class ClaimLost(Exception):
    """The run was cancelled, deleted or taken over: what was computed must not be written."""


async def execute_queued_run(deps: Deps, key: RunKey) -> None:
    """Claim a queued run and execute it; quiet when there is nothing to claim. What a worker's job does.

    Keeps trying to write the end state while the store is away, since the answers are paid for.
    """
    claim = await _claim_when_free(deps, key)
    if claim is None:
        return
    with contextlib.suppress(ClaimLost):
        await execute_run(deps, claim, Mode.QUEUED, patience_s=deps.policy.finish_patience_s)


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


async def execute_run(deps: Deps, claim: Claim, mode: Mode, *, patience_s: float = 0.0) -> Run:
    """Judge the claimed run and write its end state, once; returns the run as it ended and as it is kept.

    Raises ClaimLost when somebody else decides over the run now, StoreUnavailable when the end state could not be
    written within patience_s. When cancelled, gives the run back as queued with the steps it has.
    """
    with _telemetry(deps, claim.run, mode) as outcome:
        judged = _Judged(claim.run)
        try:
            await _judge_while_held(deps, claim, judged)
            await _finish(deps, claim, judged, patience_s)
        except asyncio.CancelledError:
            await _give_back(deps, claim, judged)
            raise
        except ClaimLost:
            await _forget_answers_of_the_dead(deps, claim, judged)
            raise
        outcome.append(judged.run)
    return judged.run


async def execute_unstored(deps: Deps, claim: Claim) -> Run:
    """Judge a run that is kept nowhere (`store: none`)."""

    async def on_step(run: Run, step: Step) -> None:
        """Nothing is kept."""

    with _telemetry(deps, claim.run, Mode.INLINE) as outcome:
        run = _ended(deps, await _judge_until_deadline(deps, claim, on_step, [], keeper=None), claim.request)
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


async def _judge_while_held(deps: Deps, claim: Claim, judged: _Judged) -> None:
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
        run = await _judge_until_deadline(deps, claim, on_step, judged.cache_keys, keeper)
    finally:
        keeper.cancel()
    judged.run = kept(_ended(deps, run, claim.request), policy)


async def _keep_lease(deps: Deps, claim: Claim) -> None:
    """Renew the lease until the claim is lost, which a change of the run (cancel, delete) tells at once."""
    async with deps.notifier.watch(claim.key) as watch:
        while True:
            await watch.changed(deps.policy.lease_s / 3)
            with contextlib.suppress(StoreUnavailable):
                if not await deps.store.renew(claim, deps.policy.lease_s):
                    return


async def _judge_until_deadline(
    deps: Deps,
    claim: Claim,
    on_step: Callable[[Run, Step], Awaitable[None]],
    cache_keys: list[str],
    keeper: asyncio.Task[None] | None,
) -> Run:
    latest = claim.run
    seconds_left = _seconds_left(deps, claim.run)
    if seconds_left <= 0:
        return _expired(latest)

    async def remember(run: Run, step: Step) -> None:
        nonlocal latest
        latest = run
        await on_step(run, step)

    # The judge is given a little less, so that a reason that comes too late costs the reason and not the score.
    judges_deadline = deps.clock.monotonic() + seconds_left - min(REASON_MARGIN_S, seconds_left * 0.05)
    judging = asyncio.create_task(_judge(deps, claim, judges_deadline, remember, cache_keys))
    tasks = {judging} if keeper is None else {judging, keeper}
    try:
        await asyncio.wait(tasks, timeout=seconds_left, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not judging.done():
            judging.cancel()
            await asyncio.wait({judging})
    if not judging.cancelled():
        run = judging.result()
        timed_out = run.error is not None and run.error.code is ErrorCode.JUDGE_TIMEOUT
        return _expired(run) if timed_out and deps.clock.monotonic() >= judges_deadline else run
    if keeper is not None and keeper.done():
        raise ClaimLost
    return _expired(latest)


async def _judge(
    deps: Deps,
    claim: Claim,
    deadline: float,
    on_step: Callable[[Run, Step], Awaitable[None]],
    cache_keys: list[str],
) -> Run:
    run, request = claim.run, claim.request
    try:
        model = deps.models.get(request.model)
    except KeyError:
        return _failed(run, NotConfigured("The judge model of this run is no longer configured; add it and retry"))
    judge = Judge(
        model=model,
        cache=deps.cache,
        tenant=claim.key.tenant,
        fence_key=await deps.store.fence_key(),
        clock=deps.clock,
        telemetry=deps.telemetry,
    )
    scorer = deps.scorers[run.scorer_id]
    try:
        return await judge_run(run, request, scorer, judge, deadline=deadline, on_step=on_step, cache_keys=cache_keys)
    except (ClaimLost, StoreUnavailable):
        raise
    except Exception:
        # A bug must cost one run and not the worker; the traceback goes to the log without local variables.
        log.exception("run_crashed", run_id=run.run_id, scorer=run.scorer_id)
        return _failed(run, Internal("Assay failed on this run; the log tells why under its runId"))


def _seconds_left(deps: Deps, run: Run) -> float:
    if run.deadline_at is None:
        return deps.policy.run_timeout_ms / 1000
    return (run.deadline_at - deps.clock.now()).total_seconds()


def _failed(run: Run, error: NotConfigured | Internal) -> Run:
    return run.model_copy(update={"status": RunStatus.FAILED, "score": None, "error": error.as_run_error()})


def _expired(run: Run) -> Run:
    error = RunExpired("The deadline passed before the run ended; raise timeoutMs or use a faster judge")
    return run.model_copy(update={"status": RunStatus.EXPIRED, "score": None, "error": error.as_run_error()})


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
                judged.run,
                cache_keys=judged.unwritten_keys,
                keep_request=claim.request.store is StorePolicy.FULL,
                last_step=judged.last_step,
            )
            break
        except StoreUnavailable:
            if deps.clock.monotonic() >= give_up:
                raise
            await asyncio.sleep(FINISH_PAUSE_S)
    if not written:
        raise ClaimLost
    private = [key for key in judged.cache_keys if key.startswith(PRIVATE_PREFIX)]
    if private:
        await deps.cache.forget(private)


async def _give_back(deps: Deps, claim: Claim, judged: _Judged) -> None:
    # The lease would end by itself; giving back at once only saves the next worker the wait.
    with contextlib.suppress(StoreUnavailable):
        await asyncio.shield(deps.store.release(claim, judged.unwritten_keys))


async def _forget_answers_of_the_dead(deps: Deps, claim: Claim, judged: _Judged) -> None:
    """Forget what was cached for a run that was deleted; who took a run over goes on with its answers."""
    with contextlib.suppress(StoreUnavailable):
        if await deps.store.get(claim.key) is None:
            await deps.cache.forget(judged.cache_keys)
