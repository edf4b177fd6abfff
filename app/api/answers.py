"""Runs as responses: stored bytes, entity tags, where the run lives and when to look again."""

import hashlib
from typing import Any, Final

from pydantic_core import from_json, to_json
from starlette.responses import Response
from starlette.types import Scope

from app.api.headers import header_values
from app.api.queries import RunParameters
from app.domain.run import RunStatus
from app.ports import StoredRun

JSON: Final = "application/json"
PROMPT_FIELDS: Final = ("preprocessPrompt", "analyzePrompt", "generateReasonPrompt")
RETRY_AFTER_S: Final = "1"


def location_of(run_id: str) -> str:
    """Return the path at which a run is found."""
    return f"/v1/runs/{run_id}"


def represent(body: bytes, parameters: RunParameters) -> bytes:
    """Return a stored run as it is wanted: with its prompts, or without the three fields."""
    return body if parameters.prompts else to_json(_without_prompts(from_json(body)))


def _without_prompts(run: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in PROMPT_FIELDS}


def entity_tag(content: bytes) -> str:
    """Return the strong entity tag of a representation: equal bytes have equal tags, wherever they are answered."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def run_headers(content: bytes, status: RunStatus) -> dict[str, str]:
    """Return the headers that belong to a run in any state."""
    headers = {"ETag": entity_tag(content)}
    if not status.ended:
        headers["Retry-After"] = RETRY_AFTER_S
    return headers


def run_response(scope: Scope, stored: StoredRun, parameters: RunParameters) -> Response:
    """Return 200 with the run, or 304 when the caller has this very representation."""
    content = represent(stored.body, parameters)
    headers = run_headers(content, stored.status)
    if _is_known(scope, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, JSON)


def _is_known(scope: Scope, tag: str) -> bool:
    values = header_values(scope, b"if-none-match")
    if not values:
        return False
    known = {candidate.strip().removeprefix("W/") for candidate in b",".join(values).decode("latin-1").split(",")}
    return tag in known or "*" in known


def listing(items: list[bytes], next_cursor: str | None) -> Response:
    """Return a page in the form that all lists have."""
    content = b'{"items":[' + b",".join(items) + b'],"nextCursor":' + to_json(next_cursor) + b"}"
    return Response(content, 200, media_type=JSON)
