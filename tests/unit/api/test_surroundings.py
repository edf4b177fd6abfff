"""What surrounds every request: trace ids, common headers, metrics and the last resort."""

import json
import re
from typing import Any

import pytest
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.errors import MethodNotAllowed
from app.api.middleware import LastResort, Metering, Tracing, trace_id_from
from app.api.problems import TRACE_ID
from app.api.routing import ROUTE_TEMPLATE, Resource
from tests.unit.api.asgi import Exchange, http_scope

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    "traceparent", [f"00-{TRACE}-00f067aa0ba902b7-01", f"cc-{TRACE}-00f067aa0ba902b7-01-what-comes"]
)
def test_the_callers_trace_is_taken_over(traceparent: str) -> None:
    assert trace_id_from(http_scope(headers=[(b"traceparent", traceparent.encode())])) == TRACE


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        TRACE,
        f"ff-{TRACE}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-00f067aa0ba902b7-01",
        f"00-{TRACE}-00f067aa0ba902b7-0x",
    ],
)
def test_a_trace_that_is_none_is_replaced(traceparent: str) -> None:
    made = trace_id_from(http_scope(headers=[(b"traceparent", traceparent.encode())]))
    assert re.fullmatch("[0-9a-f]{32}", made)
    assert made != TRACE


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await Response("hello")(scope, receive, send)


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("canary in a message")


async def broken_midway(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise ValueError("canary in a message")


async def gone(scope: Scope, receive: Receive, send: Send) -> None:
    raise ClientDisconnect


@pytest.mark.anyio
async def test_every_answer_is_private_and_traced() -> None:
    scope = http_scope()
    exchange = await Exchange().run(Tracing(hello), scope)
    assert exchange.headers["cache-control"] == "private, no-store"
    assert exchange.headers["x-trace-id"] == scope[TRACE_ID]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("app", "route", "method", "expected"),
    [
        (hello, "/v1/runs/{run_id}", "GET", ("/v1/runs/{run_id}", "GET", 200)),
        (hello, None, "GET", ("unmatched", "GET", 200)),
        (gone, None, "POST", ("unmatched", "POST", 499)),
    ],
)
async def test_a_request_is_counted_by_its_template(
    app: Any, route: str | None, method: str, expected: tuple[str, str, int]
) -> None:
    counted: list[tuple[Any, ...]] = []
    scope = http_scope("/v1/runs/run-00000001", method) | ({ROUTE_TEMPLATE: route} if route else {})
    await Exchange().run(Metering(LastResort(app), lambda *labels: counted.append(labels)), scope)
    assert [labels[:3] for labels in counted] == [expected]


@pytest.mark.anyio
async def test_an_unforeseen_exception_is_a_500_that_tells_nothing_and_one_log_line() -> None:
    with structlog.testing.capture_logs() as logged:
        exchange = await Exchange().run(LastResort(broken), http_scope() | {TRACE_ID: TRACE})
    assert exchange.status == 500
    assert json.loads(exchange.body)["traceId"] == TRACE
    assert b"canary" not in exchange.body
    assert [entry["event"] for entry in logged] == ["request_failed"]


@pytest.mark.anyio
async def test_an_exception_after_the_response_began_ends_it_and_is_logged() -> None:
    with structlog.testing.capture_logs() as logged:
        exchange = await Exchange().run(LastResort(broken_midway), http_scope())
    assert [message["type"] for message in exchange.sent] == ["http.response.start"]
    assert len(logged) == 1


@pytest.mark.anyio
async def test_a_client_that_goes_away_is_no_failure() -> None:
    with structlog.testing.capture_logs() as logged:
        exchange = await Exchange().run(LastResort(gone), http_scope())
    assert (exchange.sent, logged) == ([], [])


async def _answer(request: Request) -> Response:
    return Response(request.method)


@pytest.mark.anyio
async def test_a_path_lists_all_its_methods_in_allow() -> None:
    path = Resource("/x/{y}", {"GET": _answer, "POST": _answer})
    for method in ("GET", "HEAD", "POST"):
        assert (await Exchange().run(path, http_scope(method=method))).body == method.encode()
    with pytest.raises(MethodNotAllowed) as caught:
        await Exchange().run(path, http_scope(method="PUT"))
    assert caught.value.headers == {"Allow": "GET, HEAD, POST"}
