"""Bodies: the label is checked first, then the size, then the bytes; nothing is read in vain."""

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request

from app.api import bodies
from app.api.bodies import parse_model, read_model
from app.api.errors import BodyTooSlow, ContentTooLarge, MalformedJson, UnsupportedMediaType
from app.domain.errors import InvalidRequest
from app.domain.request import MultiScoreRequest, ScoreRequest
from tests.unit.api.asgi import Exchange, http_scope

LIMIT = 64
JSON_LABEL = (b"content-type", b"application/json")


async def read(exchange: Exchange, *headers: tuple[bytes, bytes]) -> ScoreRequest:
    scope = http_scope(method="POST", headers=headers, max_body_bytes=LIMIT)
    return await read_model(Request(scope, exchange.receive), ScoreRequest)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "label",
    [
        b"application/json",
        b"Application/JSON",
        b"application/json; charset=utf-8",
        b'application/json;charset="UTF-8"',
        b"application/problem+json",
        b"application/json; odd",
    ],
)
async def test_json_labels(label: bytes) -> None:
    body = await read(Exchange([b'{"output":"a"}']), (b"content-type", label))
    assert body.output == "a"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"content-type", b"")],
        [(b"content-type", b"text/plain")],
        [(b"content-type", b"application/x-www-form-urlencoded")],
        [(b"content-type", b"application/jsonp")],
        [(b"content-type", b"application/json; charset=utf-16")],
        [JSON_LABEL, (b"content-encoding", b"gzip")],
    ],
)
async def test_other_labels_are_refused_before_a_byte_is_read(headers: list[tuple[bytes, bytes]]) -> None:
    exchange = Exchange([b'{"output":"a"}'])
    with pytest.raises(UnsupportedMediaType):
        await read(exchange, *headers)
    assert exchange.received == 0


@pytest.mark.anyio
@pytest.mark.parametrize("length", [b"65", b"9" * 30])
async def test_a_declared_length_beyond_the_limit_is_refused_before_a_byte_is_read(length: bytes) -> None:
    exchange = Exchange([b"x" * 100])
    with pytest.raises(ContentTooLarge):
        await read(exchange, JSON_LABEL, (b"content-length", length))
    assert exchange.received == 0


@pytest.mark.anyio
async def test_a_chunked_body_is_refused_as_soon_as_it_passes_the_limit() -> None:
    exchange = Exchange([b"x" * 40] * 1_000)
    with pytest.raises(ContentTooLarge):
        await read(exchange, JSON_LABEL)
    assert exchange.received == 2


@pytest.mark.anyio
async def test_chunks_are_joined() -> None:
    assert (await read(Exchange([b'{"out', b'put":', b'"a"}']), JSON_LABEL)).output == "a"


@pytest.mark.anyio
async def test_a_client_that_goes_away_is_told_apart_from_a_bad_body() -> None:
    exchange = Exchange([])
    with pytest.raises(ClientDisconnect):
        await read(exchange, JSON_LABEL)


@pytest.mark.anyio
async def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_TIMEOUT_S", 0.0)

    class Stalled(Exchange):
        async def receive(self) -> Any:
            await asyncio.Event().wait()

    with pytest.raises(BodyTooSlow):
        await read(Stalled(), JSON_LABEL)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"\xef\xbb\xbf{}",
        b'{"output":"a"',
        b'{"output":"a"} {}',
        b'{"output":"\xe2\x82"}',
        b'{"output":"\\ud800"}',
        b"[" * 10_000,
        b'{"output":' + b"[" * 10_000,
        b'{"output":' + b'{"a":' * 10_000,
        b'{"metadata":{"n":' + b"9" * 5_000 + b"}}",
        b"nul",
        b"{'output':'a'}",
        b"\x00",
        "{}".encode("utf-16"),
    ],
)
def test_what_is_no_json(raw: bytes) -> None:
    with pytest.raises(MalformedJson):
        parse_model(raw, ScoreRequest)


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b"null", "#"),
        (b"NaN", "#"),
        (b'"canary"', "#"),
        (b'{"output":NaN}', "#/output"),
        (b'{"output":"a\\u0000"}', "#/output"),
        (b'{"output":"a","threshold":NaN}', "#/threshold"),
        (b'{"output":"a","threshold":1e999}', "#/threshold"),
        (b'{"output":"a","threshold":"0.5"}', "#/threshold"),
        (b'{"output":"a","timeoutMs":true}', "#/timeoutMs"),
        (b'{"output":"a","timeoutMs":1e30}', "#/timeoutMs"),
        (b'{"output":"a","timeout_ms":5}', "#/timeout_ms"),
        (b'{"output":"a","output":5}', "#/output"),
        (b'{"output":"a","models":["a/b"]}', "#/models"),
        (b'{"output":"a","webhook":{"url":"https://example.org"}}', "#/webhook"),
    ],
)
def test_what_is_json_but_no_request(raw: bytes, pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_model(raw, ScoreRequest)
    assert [fault.pointer for fault in caught.value.faults] == [pointer]


def test_the_unpaired_key_is_told_once() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_model(b'{"output":"a","scorers":[{"id":"bias","zz":1}, 7]}', MultiScoreRequest)
    assert [fault.pointer for fault in caught.value.faults] == ["#/scorers/0/zz", "#/scorers/1"]


@given(raw=st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    with contextlib.suppress(MalformedJson, InvalidRequest):
        parse_model(raw, ScoreRequest)
