"""A closed-loop HTTP/1.1 load generator: N keep-alive connections, each sending its next request when answered.

Written on asyncio.Protocol and httptools so that the generator costs far less than what it measures.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httptools


@dataclass(slots=True)
class LoadResult:
    """What one load saw: wall seconds, latencies in seconds by request, statuses and bodies' count."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """The latency in milliseconds below which this share of the requests lies."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1000


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], result: LoadResult, done: asyncio.Future[None]) -> None:
        self.requests, self.result, self.done = requests, result, done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.transport.close()
            if not self.done.done():
                self.done.set_result(None)
            return
        self.parser = httptools.HttpResponseParser(self)
        self.sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.result.latencies.append(time.perf_counter() - self.sent)
        status = self.parser.get_status_code()
        self.result.statuses[status] = self.result.statuses.get(status, 0) + 1
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))


async def load(host: str, port: int, concurrency: int, requests: Iterator[bytes]) -> LoadResult:
    """Send all requests over `concurrency` connections; raises ConnectionError when one is dropped."""
    loop = asyncio.get_running_loop()
    result = LoadResult()
    waiting = []
    started = time.perf_counter()
    for _ in range(concurrency):
        done = loop.create_future()
        make: Callable[[], _Connection] = lambda done=done: _Connection(requests, result, done)  # noqa: E731
        await loop.create_connection(make, host, port)
        waiting.append(done)
    await asyncio.gather(*waiting)
    result.seconds = time.perf_counter() - started
    return result


def post(host: str, port: int, path: str, body: bytes) -> bytes:
    """Return the bytes of one JSON POST."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(host: str, port: int, path: str) -> bytes:
    """Return the bytes of one GET."""
    return f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n".encode()
