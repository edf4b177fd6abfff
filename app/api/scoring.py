"""Scoring: one text with one scorer, with several, or in the older metric shape."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field, FiniteFloat
from pydantic_core import from_json, to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from app.api.answers import JSON, RETRY_AFTER_S, location_of, represent, run_headers
from app.api.auth import caller_of, tenant_of
from app.api.bodies import read_model
from app.api.idempotency import REPLAYED, idempotency_key_of
from app.api.prefer import Preference, applied, preference_of
from app.api.problems import problem, problem_of_run
from app.api.queries import NoParameters, RunParameters, read_query
from app.api.state import deps_of
from app.domain.errors import ErrorCode, RunError
from app.domain.model import Model, NonBlankText, Text
from app.domain.request import Mode, ModelId, MultiScoreRequest, ScoreRequest, StorePolicy
from app.domain.run import RunStatus
from app.runs.submit import Submitted, submit_run, submit_runs

VARY: Final = {"Vary": "Prefer"}
FAILURES: Final = frozenset({RunStatus.FAILED, RunStatus.EXPIRED})


class MeasureRequest(Model):
    """The older metric shape: `output` is the text that is scored, `input` what it answers."""

    input: Text | None = None
    output: NonBlankText
    scale: Annotated[FiniteFloat, Field(gt=0, le=1_000_000)] = 1.0
    model: ModelId | None = None


class MeasureInfo(Model):
    """Why the score is what it is."""

    reason: str | None


class MeasureResult(Model):
    """The older metric shape: the score, null when the text can't be scored, and its reason."""

    score: float | None
    info: MeasureInfo


@dataclass(frozen=True, slots=True)
class _Wish:
    """How this caller wants to be answered."""

    preference: Preference
    queued: bool
    cap_s: float
    parameters: RunParameters

    def headers(self, *, went_async: bool) -> dict[str, str]:
        honoured = applied(self.preference, went_async=went_async, wait_cap_s=self.cap_s)
        return VARY if honoured is None else VARY | {"Preference-Applied": honoured}


async def create_run(request: Request) -> Response:
    """Score one text with one scorer."""
    scope = request.scope
    parameters = read_query(scope, RunParameters)
    idempotency_key = idempotency_key_of(scope)
    body = await read_model(request, ScoreRequest)
    wish = _wish(scope, body, parameters)
    submitted = await submit_run(
        deps_of(scope),
        tenant_of(scope),
        request.path_params["scorer_id"],
        body,
        caller=caller_of(scope),
        queued=wish.queued,
        wait_s=wish.preference.wait_s,
        idempotency_key=idempotency_key,
    )
    if submitted is None:
        return Response(status_code=204, headers=VARY)
    return _answer_one(scope, submitted, wish, kept=body.store is not StorePolicy.NONE)


async def create_runs(request: Request) -> Response:
    """Score one text with several scorers; each run tells its own status and error."""
    scope = request.scope
    parameters = read_query(scope, RunParameters)
    idempotency_key = idempotency_key_of(scope)
    body = await read_model(request, MultiScoreRequest)
    wish = _wish(scope, body, parameters)
    submitted = await submit_runs(
        deps_of(scope),
        tenant_of(scope),
        body,
        caller=caller_of(scope),
        queued=wish.queued,
        wait_s=wish.preference.wait_s,
        idempotency_key=idempotency_key,
    )
    if submitted is None:
        return Response(status_code=204, headers=VARY)
    return _answer_many(submitted, wish)


async def measure(request: Request) -> Response:
    """Score one text inline in the older metric shape."""
    scope = request.scope
    read_query(scope, NoParameters)
    asked = await read_model(request, MeasureRequest)
    body = ScoreRequest(
        output=asked.output, input=asked.input, options={"scale": asked.scale}, model=asked.model, mode=Mode.INLINE
    )
    submitted = await submit_run(
        deps_of(scope),
        tenant_of(scope),
        request.path_params["scorer_id"],
        body,
        caller=caller_of(scope),
        queued=False,
        wait_s=None,
        idempotency_key=None,
    )
    if submitted is None:
        raise AssertionError("a request without sampling is always scored")
    headers = {"Location": location_of(submitted.run_id)}
    if not submitted.status.ended:
        return _not_ready(scope, submitted.run_id, headers | {"Retry-After": RETRY_AFTER_S})
    run = from_json(submitted.body)
    if submitted.status in FAILURES:
        return problem_of_run(scope, submitted.run_id, _error_of(run), headers)
    result = MeasureResult(score=run["score"], info=MeasureInfo(reason=run["reason"]))
    return Response(result.model_dump_json(), 200, headers, JSON)


def _wish(scope: Scope, body: ScoreRequest, parameters: RunParameters) -> _Wish:
    preference = preference_of(scope)
    queued = body.mode is Mode.QUEUED or preference.respond_async
    return _Wish(preference, queued, deps_of(scope).policy.inline_wait_s, parameters)


def _answer_one(scope: Scope, submitted: Submitted, wish: _Wish, *, kept: bool) -> Response:
    ended = submitted.status.ended
    headers = wish.headers(went_async=not ended)
    if kept:
        headers = headers | {"Location": location_of(submitted.run_id)}
    if submitted.replayed:
        headers = headers | REPLAYED
    if submitted.status in FAILURES and not wish.queued:
        return problem_of_run(scope, submitted.run_id, _error_of(from_json(submitted.body)), headers)
    content = represent(submitted.body, wish.parameters)
    return Response(content, 200 if ended else 202, headers | run_headers(content, submitted.status), JSON)


def _answer_many(submitted: list[Submitted], wish: _Wish) -> Response:
    ended = all(one.status.ended for one in submitted)
    headers = wish.headers(went_async=not ended)
    if not ended:
        headers = headers | {"Retry-After": RETRY_AFTER_S}
    if submitted and all(one.replayed for one in submitted):
        headers = headers | REPLAYED
    runs = b",".join(represent(one.body, wish.parameters) for one in submitted)
    return Response(b'{"runs":[' + runs + b"]}", 200 if ended else 202, headers, JSON)


def _error_of(run: Mapping[str, Any]) -> RunError:
    return RunError.model_validate_json(to_json(run["error"]))


def _not_ready(scope: Scope, run_id: str, headers: Mapping[str, str]) -> Response:
    return problem(
        scope,
        status=504,
        code=ErrorCode.JUDGE_TIMEOUT,
        title="The score is not ready yet",
        detail="The run goes on in the queue; GET it at Location",
        run_id=run_id,
        headers=headers,
    )
