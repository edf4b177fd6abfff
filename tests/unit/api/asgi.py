"""Requests without a server: scopes, bodies in chunks, and what an ASGI app sent back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message


def http_scope(
    path: str = "/", method: str = "GET", headers: Sequence[tuple[bytes, bytes]] = (), query: bytes = b"", **state: Any
) -> dict[str, Any]:
    """Return the scope of one request."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "root_path": "",
        "query_string": query,
        "headers": list(headers),
        "state": state,
    }


@dataclass
class Exchange:
    """What was received and sent; bodies arrive in the given chunks."""

    chunks: list[bytes] = field(default_factory=lambda: [b""])
    sent: list[Message] = field(default_factory=list)
    received: int = 0

    async def receive(self) -> Message:
        """Return the next chunk, then that the client is gone."""
        if self.received >= len(self.chunks):
            return {"type": "http.disconnect"}
        self.received += 1
        more = self.received < len(self.chunks)
        return {"type": "http.request", "body": self.chunks[self.received - 1], "more_body": more}

    async def send(self, message: Message) -> None:
        """Note what the app sends."""
        self.sent.append(message)

    async def run(self, app: ASGIApp, scope: dict[str, Any]) -> "Exchange":
        """Let the app serve this request."""
        await app(scope, self.receive, self.send)
        return self

    @property
    def status(self) -> int:
        """The status of the response."""
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        """The body of the response."""
        return b"".join(message.get("body", b"") for message in self.sent[1:])
