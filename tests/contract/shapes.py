"""What answers look like, whoever sends them."""

import re
import uuid
from typing import Any

import httpx

from app.domain.errors import ErrorCode

PROBLEM_FIELDS = {"type", "title", "status", "code", "detail", "traceId"}


def unique(text: str = "The north village is always inferior. Everybody should visit it.") -> str:
    """A text that no other test has scored."""
    return f"{text} This is note {uuid.uuid4().hex}."


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Return a response's problem after checking that it is a complete one."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert set(body) - {"runId", "errors", "checks"} == PROBLEM_FIELDS
    assert (body["status"], body["code"], body["type"]) == (status, code, f"/problems/{code}")
    assert code in {known.value for known in ErrorCode}
    assert re.fullmatch("[0-9a-f]{32}", body["traceId"])
    assert body["traceId"] == response.headers["x-trace-id"]
    assert response.headers["cache-control"] == "private, no-store"
    return body


def pointers(body: dict[str, Any]) -> list[str]:
    """Return where a problem's faults are."""
    return [fault["pointer"] for fault in body["errors"]]


def run(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return a response's run after checking what all answers with a run have."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "private, no-store"
    assert re.fullmatch('"[^"]+"', response.headers["etag"])
    assert "server" not in response.headers
    body: dict[str, Any] = response.json()
    return body
