"""The engine under a deadline and a claim."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from app.computed.execute import compute_run
from app.computed.scorer import ComputedScorer
from app.custom.compiled import CustomScorer
from app.custom.execute import judge_custom
from app.domain.errors import ErrorCode, Internal, NotConfigured, RunExpired, StoreUnavailable
from app.domain.run import Run, RunStatus, Step
from app.judge.askers import Judge
from app.judge.execute import judge_run
from app.ports import Claim, Slot
from app.runs.deps import Deps
from app.runs.lease import ClaimLost, FencedModel, Lease

log = structlog.get_logger()

REASON_MARGIN_S = 0.2


async def judge_until_deadline(
    deps: Deps,
    claim: Claim,
    on_step: Callable[[Run, Step], Awaitable[None]],
    cache_keys: list[str],
    lease: Lease | None,
    slot: Slot | None = None,
) -> Run:
    """Judge the claimed run until it ends or its deadline passes, and return it as it ended (`expired` then).

    `lease` is kept meanwhile; raises ClaimLost when it is lost. `slot` is a queued run's (see ports.ChatModel).
    `on_step` is awaited after each step, and `cache_keys` gets the keys under which answers may be cached. Raises
    StoreUnavailable when the fence's key can't be had.
    """
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
    judging = asyncio.create_task(_judge(deps, claim, judges_deadline, remember, cache_keys, lease, slot))
    keeper = None if lease is None else asyncio.create_task(lease.keep())
    tasks = {judging} if keeper is None else {judging, keeper}
    try:
        await asyncio.wait(tasks, timeout=seconds_left, return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_lost = keeper is not None and keeper.done()
        if keeper is not None:
            keeper.cancel()
        if not judging.done():
            judging.cancel()
            await asyncio.wait({judging})
    if not judging.cancelled():
        run = judging.result()
        timed_out = run.error is not None and run.error.code is ErrorCode.JUDGE_TIMEOUT
        return _expired(run) if timed_out and deps.clock.monotonic() >= judges_deadline else run
    if is_lost:
        raise ClaimLost
    return _expired(latest)


async def _judge(
    deps: Deps,
    claim: Claim,
    deadline: float,
    on_step: Callable[[Run, Step], Awaitable[None]],
    cache_keys: list[str],
    lease: Lease | None,
    slot: Slot | None,
) -> Run:
    run, request = claim.run, claim.request
    try:
        scorer = await deps.scorers.of_run(request)
        # Code may have changed since the run was accepted, or last tried.
        run = run.model_copy(update={"scorer_version": scorer.version})
        if isinstance(scorer, ComputedScorer):
            return await compute_run(
                run,
                request,
                scorer,
                clock=deps.clock,
                telemetry=deps.telemetry,
                pool=deps.computing,
                on_step=on_step,
            )
        judge = await _judge_of(deps, claim, lease, slot)
        if isinstance(scorer, CustomScorer):
            return await judge_custom(
                run, request, scorer, judge, deadline=deadline, on_step=on_step, cache_keys=cache_keys
            )
        return await judge_run(run, request, scorer, judge, deadline=deadline, on_step=on_step, cache_keys=cache_keys)
    except NotConfigured as error:
        return _failed(run, error)
    except (ClaimLost, StoreUnavailable, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        # A bug must cost one run and not the worker, even a panic of a library in Rust, which is no Exception. The
        # traceback goes to the log without local variables.
        log.exception("run_crashed", run_id=run.run_id, scorer=run.scorer_id)
        return _failed(run, Internal("Assay failed on this run; the log tells why under its runId"))


async def _judge_of(deps: Deps, claim: Claim, lease: Lease | None, slot: Slot | None) -> Judge:
    """Return who judges the run; raises NotConfigured when a model of it is gone, StoreUnavailable."""
    try:
        models = [deps.models.get(model_id) for model_id in claim.request.models or [claim.request.model or ""]]
    except KeyError:
        raise NotConfigured("A judge model of this run is no longer configured; add it and retry") from None
    first, *panel = models if lease is None else [FencedModel(model, lease) for model in models]
    return Judge(
        model=first,
        cache=deps.cache,
        tenant=claim.key.tenant,
        fence_key=await deps.store.fence_key(),
        clock=deps.clock,
        telemetry=deps.telemetry,
        slot=slot,
        panel=tuple(panel),
    )


def _seconds_left(deps: Deps, run: Run) -> float:
    if run.deadline_at is None:
        return deps.policy.run_timeout_ms / 1000
    return (run.deadline_at - deps.clock.now()).total_seconds()


def _failed(run: Run, error: NotConfigured | Internal) -> Run:
    return run.model_copy(update={"status": RunStatus.FAILED, "score": None, "error": error.as_run_error()})


def _expired(run: Run) -> Run:
    error = RunExpired("The deadline passed before the run ended; raise timeoutMs or use a faster judge")
    return run.model_copy(update={"status": RunStatus.EXPIRED, "score": None, "error": error.as_run_error()})
