"""What is no HTTP request is answered as any other error: with a problem, and the connection is closed."""

import json
import socket

import pytest

from tests.contract.running import PATIENCE_S, RunningApp

HEAD = b"POST /v1/scorers/bias/runs HTTP/1.1\r\nHost: assay\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"FOO / HTTP/1.1\r\nHost: assay\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_it_gets_a_problem(api: RunningApp, sent: bytes) -> None:
    with socket.create_connection(api.socket.getsockname(), timeout=PATIENCE_S) as connection:
        connection.sendall(sent)
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (400, "invalid_request")
    assert problem["traceId"].encode() in head
