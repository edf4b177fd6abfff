"""Execute a claimed run: the one function that the inline route and the worker both await."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import structlog

from app.domain.errors import Internal, StoreUnavailable
from app.domain.request import Mode, RunRequest, StorePolicy
from app.domain.run import Run, RunStatus, Step
from app.judge.answers import PRIVATE_PREFIX
from app.ports import Claim, RunKey, Slot, StepEnd
from app.runs.claiming import accepted_at, claimed_when_free, is_spent, milliseconds_since
from app.runs.deps import Deps
from app.runs.judging import judge_until_deadline
from app.runs.kept import kept
from app.runs.lease import ClaimLost, Lease
from app.runs.recovery import Reason, tell_recovery

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
    async with claimed_when_free(deps, key, slot) as claim:
        if claim is None:
            return
        with contextlib.suppress(ClaimLost):
            await execute_run(deps, claim, Mode.QUEUED, patience_s=deps.policy.finish_patience_s, slot=slot)


async def execute_run(
    deps: Deps, claim: Claim, mode: Mode, *, patience_s: float = 0.0, slot: Slot | None = None
) -> Run:
    """Judge the claimed run and write its end state, once; returns the run as it ended.

    A run that was lost too often ends as failed, unjudged. Raises ClaimLost when somebody else decides over the run
    now, StoreUnavailable when the end state could not be written within patience_s; it is then tried on in the
    background. When cancelled, gives the run back as queued with the steps it has.
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
        run = _ended(deps, await judge_until_deadline(deps, claim, on_step, [], lease=None), claim.request)
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
    deps.telemetry.run_finished(run.scorer_id, mode, run.status, seconds, unscaled, attempts=run.attempts)
    error = None if run.error is None else run.error.code
    log.info("run_finished", run_id=run.run_id, scorer=run.scorer_id, mode=mode, status=run.status, error=error)


async def _judge_while_held(deps: Deps, claim: Claim, judged: _Judged, slot: Slot | None) -> None:
    async def on_step(run: Run, step: Step) -> None:
        run = await kept(run, claim.request, deps.scorers)
        if step is Step.GENERATE_REASON:
            # The end follows at once and is written together with it.
            judged.last_step = StepEnd(step.value, run)
            return
        # A partial result that can't be written now is no reason to stop: the end state carries all of it.
        with contextlib.suppress(StoreUnavailable):
            if not await deps.store.checkpoint(claim, run, step.value, judged.unwritten_keys):
                raise ClaimLost
            judged.keys_written = len(judged.cache_keys)

    if is_spent(claim):
        run = _lost_too_often(claim)
    else:
        run = await judge_until_deadline(deps, claim, on_step, judged.cache_keys, Lease(deps, claim), slot)
    judged.run = _ended(deps, run, claim.request)


def _ended(deps: Deps, run: Run, request: RunRequest) -> Run:
    now = deps.clock.now()
    total_ms = milliseconds_since(accepted_at(run, request), now)
    timings = run.timings.model_copy(update={"total_ms": total_ms})
    return run.model_copy(update={"completed_at": now, "timings": timings}).with_attempt_ended(now)


def _lost_too_often(claim: Claim) -> Run:
    again = (
        "POST .../retry runs it again" if claim.request.store is StorePolicy.FULL else "submit it anew to run it again"
    )
    error = Internal(f"The run's process died {claim.losses} times while it ran; {again}")
    return claim.run.model_copy(update={"status": RunStatus.FAILED, "score": None, "error": error.as_run_error()})


async def _finish(deps: Deps, claim: Claim, judged: _Judged, patience_s: float, *, was_away: bool = False) -> None:
    give_up = deps.clock.monotonic() + patience_s
    while True:
        try:
            written = await deps.store.finish(
                claim,
                await kept(judged.run, claim.request, deps.scorers),
                cache_keys=judged.unwritten_keys,
                keep_request=claim.request.store is StorePolicy.FULL,
                last_step=judged.last_step,
            )
            break
        except StoreUnavailable as error:
            if deps.clock.monotonic() >= give_up:
                raise _NotWritten from error
            was_away = True
            await asyncio.sleep(FINISH_PAUSE_S)
    if not written:
        raise ClaimLost
    if was_away:
        tell_recovery(deps, Reason.FINISHED_LATE, claim.key.run_id)
    if is_spent(claim):
        tell_recovery(deps, Reason.ATTEMPTS_SPENT, claim.key.run_id)
    await _forget(deps, judged.keys_to_forget(claim.request.store))


def _finish_later(deps: Deps, claim: Claim, judged: _Judged) -> None:
    """Go on trying to write a run that was judged while the store was away: its answers are paid for."""

    async def finish() -> None:
        with contextlib.suppress(ClaimLost, StoreUnavailable):
            await _finish(deps, claim, judged, deps.policy.finish_patience_s, was_away=True)

    task = asyncio.create_task(finish())
    deps.finishing.add(task)
    task.add_done_callback(deps.finishing.discard)


async def _give_back(deps: Deps, claim: Claim, judged: _Judged) -> None:
    async def release() -> None:
        # The lease would end by itself; giving back at once only saves the next worker the wait.
        with contextlib.suppress(StoreUnavailable):
            if await deps.store.release(claim, judged.unwritten_keys):
                tell_recovery(deps, Reason.GIVEN_BACK, claim.key.run_id)

    await asyncio.shield(release())


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
