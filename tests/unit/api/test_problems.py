"""Every error has one status, one shape and no secrets."""

import json
from typing import Any

import pytest

from app.api.errors import BodyTooSlow, ContentTooLarge, MalformedJson, MethodNotAllowed, UnsupportedMediaType
from app.api.explanations import EXPLANATIONS
from app.api.problems import PROBLEM_JSON, STATUS, TRACE_ID, problem_of_bug, problem_of_error, problem_of_run
from app.domain import errors
from app.domain.errors import AssayError, ErrorCode, Fault, InvalidRequest, RunError

SCOPE = {"type": "http", TRACE_ID: "0" * 31 + "1"}


def body_of(response: Any) -> dict[str, Any]:
    assert response.headers["content-type"] == PROBLEM_JSON
    return json.loads(response.body)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (MalformedJson("d"), 400, "malformed_json"),
        (errors.NotFound("d"), 404, "not_found"),
        (MethodNotAllowed("d"), 405, "method_not_allowed"),
        (BodyTooSlow("d"), 408, "invalid_request"),
        (errors.IdempotencyConflict("d"), 409, "idempotency_conflict"),
        (errors.RunConflict("d"), 409, "invalid_request"),
        (ContentTooLarge("d"), 413, "content_too_large"),
        (UnsupportedMediaType("d"), 415, "unsupported_media_type"),
        (InvalidRequest("d"), 422, "invalid_request"),
        (errors.ContextOverflow("d"), 422, "context_overflow"),
        (errors.CapacityReduced("d"), 503, "capacity_reduced"),
        (errors.StoreUnavailable(), 503, "capacity_reduced"),
        (errors.NotConfigured("d"), 503, "not_configured"),
        (errors.Internal("d"), 500, "internal"),
    ],
)
def test_an_error_before_a_run_is_made(error: AssayError, status: int, code: str) -> None:
    response = problem_of_error(SCOPE, error)
    body = body_of(response)
    assert response.status_code == body["status"] == status
    assert body["code"] == code
    assert body["type"] == f"/problems/{code}"
    assert body["detail"] == error.detail
    assert body["traceId"] == SCOPE[TRACE_ID]
    assert set(body) == {"type", "title", "status", "code", "detail", "traceId"}
    assert ("retry-after" in response.headers) == (status == 503)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("judge_timeout", 504),
        ("run_expired", 504),
        ("judge_unavailable", 502),
        ("judge_output_invalid", 502),
        ("judge_refused", 502),
        ("not_configured", 502),
        ("context_overflow", 422),
        ("internal", 500),
    ],
)
def test_a_run_that_failed_inline(code: str, status: int) -> None:
    error = RunError(code=ErrorCode(code), title="t", detail="d", step="analyze", reason="wrong")
    response = problem_of_run(SCOPE, "run-00000001", error, {"Location": "/v1/runs/run-00000001"})
    assert response.status_code == status
    assert response.headers["location"] == "/v1/runs/run-00000001"
    assert body_of(response)["runId"] == "run-00000001"


def test_faults_are_listed() -> None:
    fault = Fault(pointer="#/limit", code="int_parsing", detail="Send a whole number in digits")
    body = body_of(problem_of_error(SCOPE, InvalidRequest("d", (fault,))))
    assert body["errors"] == [{"pointer": "#/limit", "code": "int_parsing", "detail": "Send a whole number in digits"}]


def test_a_bug_tells_nothing() -> None:
    body = body_of(problem_of_bug(SCOPE))
    assert (body["status"], body["code"]) == (500, "internal")


def test_every_code_has_a_status_and_an_explanation() -> None:
    assert set(STATUS) == set(EXPLANATIONS) == set(ErrorCode)
