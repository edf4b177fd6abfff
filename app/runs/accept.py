"""From a caller's body to a run that may be stored: scorer, options, inputs and judge are checked here."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import uuid_utils
from pydantic import ValidationError

from app.domain.errors import Fault, InvalidRequest, NotConfigured, NotFound
from app.domain.faults import faults_of
from app.domain.messages import Message, text_of
from app.domain.request import (
    NOISY_INPUT,
    MultiScoreRequest,
    Options,
    RunRequest,
    Sampling,
    ScoreRequest,
    ScorerSelection,
    StorePolicy,
)
from app.domain.run import Attempt, Run, RunStatus
from app.ports import NewRun, RunKey
from app.runs.catalog import Offer
from app.runs.deps import Deps
from app.scorers import AnyScorer

MAX_RUN_ID = 64


class Accepted(NamedTuple):
    """One scorer's share of a request, checked; `options` and `threshold` are that scorer's own."""

    offer: Offer
    options: Options
    threshold: float | None

    @property
    def scorer(self) -> AnyScorer:
        """The scorer itself."""
        return self.offer.scorer


async def accept(deps: Deps, tenant: str, body: ScoreRequest, scorer_id: str) -> Accepted:
    """Check a single-scorer body.

    Raises NotFound, InvalidRequest with every fault, NotConfigured and StoreUnavailable.
    """
    offer = await deps.scorers.find(tenant, scorer_id)
    if offer is None:
        raise NotFound("There is no such scorer; GET /v1/scorers lists them")
    scorer = offer.scorer
    faults: list[Fault] = []
    options = _checked_options(scorer, body.options, "#/options", faults)
    faults += _missing_inputs(scorer, options, body)
    faults += _unsupported(scorer, options, "#/options")
    faults += _unwanted_votes(scorer, options, body, "#/options")
    if scorer.uses_judge:
        faults += _model_faults(deps, body)
    if faults or options is None:
        raise InvalidRequest("The request has faults; see errors", tuple(faults))
    return Accepted(offer, options, body.threshold)


async def accept_many(deps: Deps, tenant: str, body: MultiScoreRequest) -> list[Accepted]:
    """Check a multi-scorer body as accept does; unknown scorers are faults of `#/scorers/i`."""
    faults: list[Fault] = []
    accepted: list[Accepted] = []
    selections = [one if isinstance(one, ScorerSelection) else ScorerSelection(id=one) for one in body.scorers]
    offers = await deps.scorers.find_each(tenant, [selection.id for selection in selections])
    for index, (selection, offer) in enumerate(zip(selections, offers, strict=True)):
        if offer is None:
            known = ", ".join(sorted(deps.scorers.standing))
            detail = f"Choose one of: {known}; or one that you registered"
            faults.append(Fault(pointer=f"#/scorers/{index}", code="unknown_scorer", detail=detail))
            continue
        scorer = offer.scorer
        own = selection.options is not None
        pointer = f"#/scorers/{index}/options" if own else "#/options"
        options = _checked_options(scorer, selection.options or {} if own else body.options, pointer, faults)
        faults += _unsupported(scorer, options, pointer)
        faults += _unwanted_votes(scorer, options, body, pointer)
        faults += _missing_inputs(scorer, options, body)
        if options is not None:
            threshold = body.threshold if selection.threshold is None else selection.threshold
            accepted.append(Accepted(offer, options, threshold))
    if any(item.scorer.uses_judge for item in accepted):
        faults += _model_faults(deps, body)
    if faults:
        raise InvalidRequest("The request has faults; see errors", tuple(dict.fromkeys(faults)))
    return accepted


def _checked_options(
    scorer: AnyScorer, options: Mapping[str, Any], pointer: str, faults: list[Fault]
) -> Options | None:
    try:
        return scorer.options.model_validate_json(json.dumps(options), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        faults += faults_of(error, options, pointer)
        return None


def _unsupported(scorer: AnyScorer, options: Options | None, pointer: str) -> list[Fault]:
    if options is None or not scorer.uses_judge:
        return []
    chosen = {
        "strategy": (options.strategy, scorer.strategies),
        "scoring": (options.scoring, scorer.scorings),
        "examples": (options.examples, (*scorer.example_sets, None)),
    }
    return [
        Fault(
            pointer=f"{pointer}/{name}",
            code=f"unsupported_{name}",
            detail=f"The scorer {scorer.id} can't be asked so; choose one of: {', '.join(filter(None, known))}",
        )
        for name, (value, known) in chosen.items()
        if value not in known
    ]


def _unwanted_votes(scorer: AnyScorer, options: Options | None, body: ScoreRequest, pointer: str) -> list[Fault]:
    if scorer.takes_votes or not scorer.uses_judge:
        return []
    detail = f"The scorer {scorer.id} takes one judgement of one model"
    faults = []
    if options is not None and options.samples > 1:
        faults.append(Fault(pointer=f"{pointer}/samples", code="unsupported_samples", detail=detail))
    if body.models is not None:
        faults.append(Fault(pointer="#/models", code="unsupported_models", detail=detail))
    return faults


def _missing_inputs(scorer: AnyScorer, options: Options | None, body: ScoreRequest) -> list[Fault]:
    fields = {field.alias: getattr(body, name) for name, field in ScoreRequest.model_fields.items()}
    fields[f"metadata.{NOISY_INPUT}"] = body.noisy_input
    needs = scorer.needs if options is None else scorer.needed(options)
    faults = [
        Fault(pointer=f"#/{need.replace('.', '/')}", code="missing", detail=f"The scorer {scorer.id} needs {need}")
        for need in needs
        if not (need == "output" and scorer.needs_messages) and not _given(fields.get(need))
    ]
    if scorer.needs_messages and isinstance(body.output, str):
        detail = f"The scorer {scorer.id} needs messages here, so that it sees which tools were called"
        faults.append(Fault(pointer="#/output", code="list_type", detail=detail))
    return faults


def _given(value: str | list[str] | list[Message] | None) -> bool:
    """Whether an input holds something that can be read: not a list of blank passages, nor messages without text."""
    texts = [value] if isinstance(value, str) else value or []
    return any((text if isinstance(text, str) else text_of([text])).strip() for text in texts)


def _model_faults(deps: Deps, body: ScoreRequest) -> list[Fault]:
    if body.models is not None:
        return _panel_faults(deps, body, body.models)
    if body.model is None:
        if deps.models.default is None:
            raise NotConfigured("No judge model is configured: set ASSAY_JUDGE_MODEL or ASSAY_MODELS_FILE")
        return []
    return [] if body.model in deps.models.ids else [_unknown_model(deps, "#/model")]


def _panel_faults(deps: Deps, body: ScoreRequest, models: Sequence[str]) -> list[Fault]:
    faults = [
        _unknown_model(deps, f"#/models/{index}") for index, model in enumerate(models) if model not in deps.models.ids
    ]
    faults += [
        Fault(pointer=f"#/models/{index}", code="repeated", detail="Name each model of a panel once")
        for index, model in enumerate(models)
        if model in models[:index]
    ]
    if body.model is not None:
        faults.append(Fault(pointer="#/model", code="model_and_models", detail="Send either model or models"))
    return faults


def _first_model(deps: Deps, body: ScoreRequest) -> str | None:
    return body.models[0] if body.models else body.model or deps.models.default


def _unknown_model(deps: Deps, pointer: str) -> Fault:
    known = ", ".join(deps.models.ids) or "none is configured"
    return Fault(pointer=pointer, code="unknown_model", detail=f"Choose one of the configured models: {known}")


def is_sampled(sampling: Sampling | None) -> bool:
    """Return whether this traffic is scored: the key's SHA-256, read as a fraction of 2^64, lies below the rate."""
    if sampling is None:
        return True
    fraction = int.from_bytes(hashlib.sha256(sampling.key.encode()).digest()[:8], "big") / 2**64
    return fraction < sampling.rate


def fingerprint(body: ScoreRequest, scorer_id: str | None) -> str:
    """Return the digest by which a repeated request is told from another one under the same key or runId."""
    fields = body.model_dump(mode="json", by_alias=True, exclude={"run_id"})
    canonical = json.dumps([scorer_id, fields], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def new_run_id() -> str:
    """Return a UUIDv7, so that ids sort by time."""
    return str(uuid_utils.uuid7())


def run_ids_for(body: MultiScoreRequest, accepted: list[Accepted]) -> tuple[str, ...]:
    """Return an id per scorer: the caller's runId alone for one scorer, else runId-scorerId (-2, -3 for repeats)."""
    if body.run_id is None:
        return tuple(new_run_id() for _ in accepted)
    if len(accepted) == 1:
        return (body.run_id,)
    seen: dict[str, int] = {}
    ids = []
    for item in accepted:
        count = seen[item.scorer.id] = seen.get(item.scorer.id, 0) + 1
        ids.append(f"{body.run_id}-{item.scorer.id}" + (f"-{count}" if count > 1 else ""))
    if max(map(len, ids)) > MAX_RUN_ID:
        detail = (
            f"With several scorers each run is called runId-scorerId, at most {MAX_RUN_ID} characters; shorten runId"
        )
        raise InvalidRequest(
            "The request has faults; see errors", (Fault(pointer="#/runId", code="too_long", detail=detail),)
        )
    return tuple(ids)


def new_run(
    deps: Deps,
    tenant: str,
    run_id: str,
    body: ScoreRequest,
    accepted: Accepted,
    status: RunStatus,
    caller: str,
    idempotency_key: str | None = None,
    group: str = "",
) -> NewRun:
    """Return the run as it is stored first: queued, or running when the caller executes it itself.

    `group` is the same for all runs of one request (see RunRequest).
    """
    now = deps.clock.now()
    offer, options, threshold = accepted
    scorer = offer.scorer
    request = RunRequest(
        scorer_id=scorer.id,
        definition=offer.definition,
        output=body.output,
        input=body.input,
        context=body.context,
        ground_truth=body.ground_truth,
        noisy_input=body.noisy_input,
        options=options.model_dump(mode="json", by_alias=True),
        model=_first_model(deps, body) if scorer.uses_judge else None,
        models=body.models if scorer.uses_judge else None,
        cache=body.cache,
        threshold=threshold,
        priority=body.priority,
        store=body.store,
        timeout_ms=body.timeout_ms or deps.policy.run_timeout_ms,
        caller=caller,
        group=group,
    )
    run = Run(
        run_id=run_id,
        scorer_id=scorer.id,
        scorer_version=scorer.version,
        status=status,
        scale=options.scale,
        range=(0.0, options.scale),
        direction=scorer.direction,
        threshold=threshold,
        model=request.model,
        models=request.models,
        metadata=body.kept_metadata,
        attempts=1 if status is RunStatus.RUNNING else 0,
        history=[Attempt(number=1, started_at=now)] if status is RunStatus.RUNNING else [],
        created_at=now,
        started_at=now if status is RunStatus.RUNNING else None,
        deadline_at=now + timedelta(milliseconds=request.timeout_ms),
        expires_at=now + timedelta(seconds=deps.policy.run_ttl_s),
    )
    return NewRun(
        key=RunKey(tenant, run_id),
        run=run,
        request=request,
        fingerprint=fingerprint(body, scorer.id),
        idempotency_key=idempotency_key,
    )


def refuse_unkept(body: ScoreRequest, *, queued: bool, idempotency_key: str | None) -> None:
    """Refuse `store: none` where something would have to be kept: raises InvalidRequest."""
    if body.store is not StorePolicy.NONE or not (queued or idempotency_key):
        return
    what = "a queued run has to be kept" if queued else "an Idempotency-Key has to be kept"
    fault = Fault(pointer="#/store", code="nothing_kept", detail=f"store none keeps nothing, but {what}")
    raise InvalidRequest("The request has faults; see errors", (fault,))
