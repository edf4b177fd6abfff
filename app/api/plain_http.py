"""HTTP/1.1 that stays HTTP/1.1.

Java's HttpClient, Ktor and others offer an upgrade to HTTP/2 with every first request. A server may decline by
answering as if it had not been offered (RFC 9110, section 7.8). uvicorn's parser instead stops at the end of such a
request's headers, and the body is lost.
"""

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

OFFER = (b"connection", b"upgrade", b"http2-settings")


class PlainHttpProtocol(HttpToolsProtocol):
    """Reads a request that offers an upgrade as one that does not."""

    def data_received(self, data: bytes) -> None:
        """Take bytes from the connection."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._unset_keepalive_if_required()
            if self._should_upgrade():
                self._decline(data[offer.args[0] :])
            else:
                self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserError:
            self._unset_keepalive_if_required()
            self.send_400_response("Invalid HTTP request received.")
        else:
            self._unset_keepalive_if_required()

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
