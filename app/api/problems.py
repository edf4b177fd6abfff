"""Errors on the wire: application/problem+json (RFC 9457), and the only place that knows status codes."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from app.api.errors import BodyTooSlow, TransportError
from app.domain.errors import (
    AssayError,
    CapacityReduced,
    ErrorCode,
    Fault,
    InvalidRequest,
    NotConfigured,
    NotFound,
    RunConflict,
    RunError,
    ScorersFull,
    ScorerUnusable,
)
from app.domain.model import Model

PROBLEM_JSON: Final = "application/problem+json"
TRACE_ID: Final = "assay.trace_id"
NOT_CONFIGURED_RETRY_S: Final = 60

STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.MALFORMED_JSON: 400,
    ErrorCode.INVALID_REQUEST: 422,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: 415,
    ErrorCode.CONTENT_TOO_LARGE: 413,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.IDEMPOTENCY_CONFLICT: 409,
    ErrorCode.QUOTA_EXCEEDED: 429,
    ErrorCode.CAPACITY_REDUCED: 503,
    ErrorCode.JUDGE_TIMEOUT: 504,
    ErrorCode.JUDGE_UNAVAILABLE: 502,
    ErrorCode.JUDGE_OUTPUT_INVALID: 502,
    ErrorCode.JUDGE_REFUSED: 502,
    ErrorCode.CONTEXT_OVERFLOW: 422,
    ErrorCode.NOT_CONFIGURED: 502,
    ErrorCode.RUN_EXPIRED: 504,
    ErrorCode.INTERNAL: 500,
}

# Where the status says more than the code: the same codes mean something else at another moment.
STATUS_OF_ERROR: Final[Mapping[type[AssayError], int]] = {
    NotConfigured: 503,
    ScorerUnusable: 503,
    RunConflict: 409,
    ScorersFull: 409,
    BodyTooSlow: 408,
}


class Problem(Model):
    """Why a request was not served. `code` is one of a closed list; `traceId` finds the request in the logs."""

    type: str = Field(description="Relative reference of the page that explains `code`")
    title: str
    status: int
    code: ErrorCode
    detail: str
    trace_id: str
    run_id: str | None = Field(default=None, description="The run that failed, when there is one to look at")
    errors: tuple[Fault, ...] | None = Field(default=None, description="One entry per fault of the request")


def trace_id_of(scope: Scope) -> str:
    """Return the id under which this request is logged."""
    return str(scope.get(TRACE_ID, ""))


def problem(
    scope: Scope,
    *,
    status: int,
    code: ErrorCode,
    title: str,
    detail: str,
    run_id: str | None = None,
    errors: tuple[Fault, ...] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return one problem as a response."""
    body = Problem(
        type=f"/problems/{code}",
        title=title,
        status=status,
        code=code,
        detail=detail,
        trace_id=trace_id_of(scope),
        run_id=run_id,
        errors=errors or None,
    )
    content = body.model_dump_json(exclude_none=True)
    return Response(content, status, headers, PROBLEM_JSON)


def problem_of_error(scope: Scope, error: AssayError) -> Response:
    """Return the problem of an error that ended a request before a run could tell it."""
    return problem(
        scope,
        status=STATUS_OF_ERROR.get(type(error), STATUS[error.code]),
        code=error.code,
        title=error.title,
        detail=error.detail,
        errors=error.faults if isinstance(error, InvalidRequest) else (),
        headers=_headers_of(error),
    )


def problem_of_run(scope: Scope, run_id: str, error: RunError, headers: Mapping[str, str]) -> Response:
    """Return the problem of an inline run that failed; the run itself keeps more."""
    return problem(
        scope,
        status=STATUS[error.code],
        code=error.code,
        title=error.title,
        detail=error.detail,
        run_id=run_id,
        headers=headers,
    )


def problem_of_bug(scope: Scope) -> Response:
    """Return the problem of an exception nobody foresaw; nothing of it leaves the house."""
    return problem(
        scope,
        status=500,
        code=ErrorCode.INTERNAL,
        title="Internal error",
        detail="Something went wrong here; the traceId finds it in the server's log",
    )


def _headers_of(error: AssayError) -> dict[str, str]:
    if isinstance(error, CapacityReduced):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, NotConfigured):
        return {"Retry-After": str(NOT_CONFIGURED_RETRY_S)}
    return error.headers if isinstance(error, TransportError) else {}


async def answer_assay_error(request: Request, error: Exception) -> Response:
    """Handle AssayError for the app."""
    if not isinstance(error, AssayError):
        raise error
    return problem_of_error(request.scope, error)


async def answer_http_exception(request: Request, error: Exception) -> Response:
    """Handle what the framework raises itself: unknown paths, mostly."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 404:
        return problem_of_error(
            request.scope, NotFound("There is nothing at this path; /openapi.json says what there is")
        )
    return problem(
        request.scope,
        status=error.status_code,
        code=ErrorCode.INVALID_REQUEST,
        title="The request is not valid",
        detail="The request can't be served as it is",
        headers=error.headers,
    )


def handlers() -> dict[Any, Any]:
    """Return the exception handlers of the app."""
    return {AssayError: answer_assay_error, HTTPException: answer_http_exception}
