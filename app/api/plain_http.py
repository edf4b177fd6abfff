"""HTTP/1.1 that stays HTTP/1.1, on connections that can be ended between two requests.

Java's HttpClient, Ktor and others offer an upgrade to HTTP/2 with every first request. A server may decline by
answering as if it had not been offered (RFC 9110, section 7.8). uvicorn's parser instead stops at the end of such a
request's headers, and the body is lost.

A connection that the server closes while the next request is on its way costs that request. So a stopping server says
`Connection: close` with its answers first (RFC 9112, section 9.6), and closes what stayed idle later.
"""

import os

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.problems import PROBLEM_JSON, Problem
from app.domain.errors import ErrorCode, InvalidRequest

OFFER = (b"connection", b"upgrade", b"http2-settings")


class PlainHttpProtocol(HttpToolsProtocol):
    """Reads a request that offers an upgrade as one that does not; `drain` makes the next answer the last."""

    _is_draining = False

    def drain(self) -> None:
        """End the connection with the next answer that begins."""
        self._is_draining = True
        self._say_goodbye()

    def on_headers_complete(self) -> None:
        """Begin to answer a request."""
        super().on_headers_complete()
        if self._is_draining:
            self._say_goodbye()

    def data_received(self, data: bytes) -> None:
        """Take bytes from the connection."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._unset_keepalive_if_required()
            if self._should_upgrade():
                self._decline(data[offer.args[0] :])
            else:
                self.send_400_response("This is not a valid HTTP/1.1 request")
        except httptools.HttpParserError:
            self._unset_keepalive_if_required()
            self.send_400_response("This is not a valid HTTP/1.1 request")
        else:
            self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP request as any other error is answered, and close the connection."""
        trace_id = os.urandom(16).hex()
        problem = Problem(
            type=f"/problems/{ErrorCode.INVALID_REQUEST}",
            title=InvalidRequest.title,
            status=400,
            code=ErrorCode.INVALID_REQUEST,
            detail=msg,
            trace_id=trace_id,
        )
        body = problem.model_dump_json(exclude_none=True).encode()
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {PROBLEM_JSON}\r\ncache-control: private, no-store\r\n"
            f"x-trace-id: {trace_id}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _say_goodbye(self) -> None:
        # An answer that has begun told the client that the connection stays open.
        if self.cycle is not None and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def _should_upgrade(self) -> bool:
        """Tell whether the request at hand offers an upgrade: the callbacks then leave it to `_decline`."""
        return self._get_upgrade() is not None

    def _decline(self, rest: bytes) -> None:
        """Read the request once more, without the offer, and then the rest of the bytes."""
        head = [self.parser.get_method(), b" ", self.url, b" HTTP/", self.parser.get_http_version().encode(), b"\r\n"]
        for name, value in self.headers:
            if name not in OFFER:
                head += (name, b": ", value, b"\r\n")
        if not self.parser.should_keep_alive():
            head.append(b"connection: close\r\n")
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"".join((*head, b"\r\n", rest)))
