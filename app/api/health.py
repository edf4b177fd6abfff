"""Is the process alive, is it ready, and what does it measure."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import JSON
from app.api.headers import header
from app.api.problems import PROBLEM_JSON, STATUS, Problem, trace_id_of
from app.api.state import state_of
from app.domain.errors import ErrorCode
from app.domain.model import Model
from app.domain.readiness import ReadinessCheck

CHECK_LIMIT_S: Final = 1.5
RETRY_AFTER_S: Final = "5"

Exposition = Callable[[str], tuple[bytes, str]]


class Liveness(Model):
    """The process runs and its loop turns."""

    status: str = "alive"


class Readiness(Model):
    """All needed checks are well."""

    status: str = "ready"
    checks: Sequence[ReadinessCheck]


class NotReady(Problem):
    """A needed check is not well."""

    checks: Sequence[ReadinessCheck] = Field(description="Everything that was looked at")


ALIVE: Final = Liveness().model_dump_json()


async def get_liveness(request: Request) -> Response:  # noqa: ARG001 - one signature for all handlers
    """Say that the process is alive; touches nothing."""
    return Response(ALIVE, 200, media_type=JSON)


async def get_readiness(request: Request) -> Response:
    """Look at what serving needs: 503 unless all needed checks are well."""
    checks = await _checks(request)
    if all(check.ok or not check.needed for check in checks):
        return Response(Readiness(checks=checks).model_dump_json(), 200, media_type=JSON)
    code = ErrorCode.CAPACITY_REDUCED
    body = NotReady(
        type=f"/problems/{code}",
        title="Not ready",
        status=STATUS[code],
        code=code,
        detail="; ".join(f"{check.name}: {check.detail}" for check in checks if check.needed and not check.ok),
        trace_id=trace_id_of(request.scope),
        checks=checks,
    )
    return Response(body.model_dump_json(exclude_none=True), STATUS[code], {"Retry-After": RETRY_AFTER_S}, PROBLEM_JSON)


async def _checks(request: Request) -> Sequence[ReadinessCheck]:
    state = state_of(request.scope)
    if state["stopping"].is_set():
        return [ReadinessCheck(name="server", ok=False, needed=True, detail="shutting down")]
    try:
        async with asyncio.timeout(CHECK_LIMIT_S):
            return await state["check"]()
    except TimeoutError:
        return [ReadinessCheck(name="checks", ok=False, needed=True, detail="no answer in time")]


def metrics_handler(exposition: Exposition) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler of GET /metrics."""

    async def get_metrics(request: Request) -> Response:
        accept = header(request.scope, b"accept") or b""
        content, content_type = exposition(accept.decode("latin-1"))
        return Response(content, 200, {"Content-Type": content_type})

    return get_metrics
