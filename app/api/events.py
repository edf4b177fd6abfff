"""The steps of a run as server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.api.headers import header
from app.api.queries import EventParameters, read_query
from app.api.runs import key_in_path
from app.api.state import deps_of, state_of
from app.domain.errors import AssayError
from app.domain.run import RunEvent
from app.runs.follow import get_run, run_events

RECONNECT_MS: Final = 1_000
OPENING: Final = f"retry: {RECONNECT_MS}\n\n".encode()
PING: Final = b": ping\n\n"
EVENT_STREAM: Final = "text/event-stream"
HEADERS: Final = {"X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Runs until the events end, the client goes away or the server stops, whichever comes first."""

    def __init__(self, events: AsyncIterator[RunEvent | None], stopping: asyncio.Event) -> None:
        super().__init__(_encoded(events), headers=HEADERS, media_type=EVENT_STREAM)
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send the stream; nothing of it is left running."""
        streaming = asyncio.create_task(self.stream_response(send))
        endings = (
            asyncio.create_task(self.listen_for_disconnect(receive)),
            asyncio.create_task(self._stopping.wait()),
        )
        try:
            await asyncio.wait({streaming, *endings}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (streaming, *endings):
                task.cancel()
            await asyncio.wait({streaming, *endings})
        if not streaming.cancelled():
            streaming.result()
        elif self._stopping.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def stream_run_events(request: Request) -> Response:
    """Stream every step as it ends, then the run; a reconnecting client goes on after its last event."""
    key = key_in_path(request)
    after = read_query(request.scope, EventParameters).last_event_id or _last_event_id(request)
    deps = deps_of(request.scope)
    # Once the stream has begun there is no 404 or 503 any more.
    await get_run(deps, key)
    if request.method == "HEAD":
        return Response(headers=HEADERS, media_type=EVENT_STREAM)
    return EventStream(run_events(deps, key, after), state_of(request.scope)["stopping"])


def _last_event_id(request: Request) -> str | None:
    value = header(request.scope, b"last-event-id")
    return value.decode("latin-1")[:64] if value else None


async def _encoded(events: AsyncIterator[RunEvent | None]) -> AsyncGenerator[bytes, None]:
    yield OPENING
    # A store that goes away ends the stream: the client comes back with Last-Event-ID.
    with contextlib.suppress(AssayError):
        async for event in events:
            yield PING if event is None else encode(event)


def encode(event: RunEvent) -> bytes:
    """Return an event in the event-stream format."""
    data = "".join(f"data: {line}\n" for line in event.data.split("\n"))
    return f"id: {event.id}\nevent: {event.event}\n{data}\n".encode()
