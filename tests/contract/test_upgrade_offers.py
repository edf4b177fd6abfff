"""A client that offers HTTP/2 with its request is answered as if it had not."""

import json
import socket

import pytest

from tests.contract.running import PATIENCE_S, RunningApp
from tests.contract.shapes import unique

OFFER = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"


def request(body: str, *, chunked: bool = False, offer: str = OFFER) -> bytes:
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    sent = f"{len(body):x}\r\n{body}\r\n0\r\n\r\n" if chunked else body
    return (
        "POST /v1/scorers/bias/runs HTTP/1.1\r\nHost: assay\r\nContent-Type: application/json\r\n"
        f"{offer}{length}\r\n\r\n{sent}"
    ).encode()


def answers(api: RunningApp, *pieces: bytes, expected: int = 1) -> list[tuple[int, bytes]]:
    """Send pieces one after another on one connection, and return status and body of every answer."""
    with socket.create_connection(api.socket.getsockname(), timeout=PATIENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        stream = connection.makefile("rb")
        return [_answer(stream) for _ in range(expected)]


def _answer(stream) -> tuple[int, bytes]:  # type: ignore[no-untyped-def]
    status = int(stream.readline().split()[1])
    length = 0
    while (line := stream.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, stream.read(length)


def noted(note: int) -> str:
    """A request body whose run tells it from others."""
    return json.dumps({"output": unique(), "metadata": {"note": note}})


def note_of(answer: tuple[int, bytes]) -> int:
    status, body = answer
    assert status == 200, body
    return json.loads(body)["metadata"]["note"]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("cuts", ["whole", "after the headers", "byte by byte"])
def test_the_body_is_read(api: RunningApp, chunked: bool, cuts: str) -> None:
    sent = request(noted(7), chunked=chunked)
    end = sent.index(b"\r\n\r\n") + 4
    pieces = {
        "whole": [sent],
        "after the headers": [sent[:end], sent[end:]],
        "byte by byte": [bytes([b]) for b in sent],
    }
    (answer,) = answers(api, *pieces[cuts])
    assert note_of(answer) == 7


def test_the_connection_goes_on(api: RunningApp) -> None:
    sent = b"".join(request(noted(note), offer=offer) for note, offer in enumerate((OFFER, "", OFFER)))
    assert [note_of(answer) for answer in answers(api, sent, expected=3)] == [0, 1, 2]


def test_a_websocket_offer_is_declined_too(api: RunningApp) -> None:
    offer = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    (answer,) = answers(api, request(noted(1), offer=offer))
    assert answer[0] == 200


def test_connect_is_refused(api: RunningApp) -> None:
    (answer,) = answers(api, b"CONNECT assay:80 HTTP/1.1\r\nHost: assay\r\n" + OFFER.encode() + b"\r\n")
    assert 400 <= answer[0] < 500
