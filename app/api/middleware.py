"""What surrounds every request, as pure ASGI: a trace id, common headers, a metric, and a last resort."""

import asyncio
import os
import re
import time
from collections.abc import Callable
from typing import Final

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.headers import header
from app.api.problems import TRACE_ID, problem_of_bug
from app.api.routing import ROUTE_TEMPLATE

log = structlog.get_logger()

UNMATCHED: Final = "unmatched"
CLIENT_CLOSED_REQUEST: Final = 499
COMMON_HEADERS: Final = ((b"cache-control", b"private, no-store"), (b"x-content-type-options", b"nosniff"))

_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")

RequestFinished = Callable[[str, str, int, float], None]


def trace_id_from(scope: Scope) -> str:
    """Return the trace id of the caller's W3C traceparent, or a new one."""
    sent = header(scope, b"traceparent")
    match = _TRACEPARENT.fullmatch(sent) if sent is not None else None
    return match[1].decode("ascii") if match else os.urandom(16).hex()


class Tracing:
    """Gives the request its trace id, in problems, logs and the header X-Trace-Id, and forbids caching."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trace_id = scope[TRACE_ID] = trace_id_from(scope)
        structlog.contextvars.bind_contextvars(trace_id=trace_id)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *COMMON_HEADERS, (b"x-trace-id", trace_id.encode())]
            await send(message)

        await self.app(scope, receive, send_with_headers)


class Metering:
    """Reports route template, method, status and seconds of each request."""

    def __init__(self, app: ASGIApp, request_finished: RequestFinished) -> None:
        self.app = app
        self.request_finished = request_finished

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = CLIENT_CLOSED_REQUEST

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_noting_status)
        finally:
            route = scope.get(ROUTE_TEMPLATE, UNMATCHED)
            self.request_finished(route, scope["method"], status, time.perf_counter() - started)


class LastResort:
    """Turns what nobody foresaw into a 500 problem and one log line."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; no exception leaves, since the server would print it with its message."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_noting_start(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, send_noting_start)
        except ClientDisconnect:
            return
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            # A panic of a library in Rust is no Exception, and no reason to answer worse than otherwise.
            log.exception("request_failed", route=scope.get(ROUTE_TEMPLATE, UNMATCHED), method=scope["method"])
            # A response that has begun can't be taken back; the server closes the connection, which tells the client.
            if not started:
                await problem_of_bug(scope)(scope, receive, send)
