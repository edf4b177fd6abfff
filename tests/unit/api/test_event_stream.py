"""Server-sent events: the format, and the three ways a stream ends."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Message

from app.api.events import EventStream, encode
from app.domain.errors import StoreUnavailable
from app.domain.run import RunEvent
from tests.unit.api.asgi import http_scope

STEP = RunEvent(id="1", event="step", data='{"step":"preprocess"}')
RUN = RunEvent(id="2", event="run", data="{}")


def test_the_format() -> None:
    assert encode(STEP) == b'id: 1\nevent: step\ndata: {"step":"preprocess"}\n\n'


def test_data_of_several_lines_stays_one_event() -> None:
    assert encode(RunEvent(id="1", event="run", data="a\nb")) == b"id: 1\nevent: run\ndata: a\ndata: b\n\n"


class Events:
    """Yields the given events, then waits for ever; notes whether it was ended."""

    def __init__(self, *events: RunEvent | Exception | None, endless: bool = False) -> None:
        self.events, self.endless = events, endless
        self.waiting, self.ended = asyncio.Event(), False

    async def __call__(self) -> AsyncIterator[RunEvent | None]:
        try:
            for event in self.events:
                if isinstance(event, Exception):
                    raise event
                yield event
            if self.endless:
                self.waiting.set()
                await asyncio.Event().wait()
        finally:
            self.ended = True


class Client:
    """Takes what is sent; `leave` ends the connection."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.left = asyncio.Event()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def complete(self) -> bool:
        return not self.sent[-1].get("more_body", True)


async def stream(events: Events, client: Client, stopping: asyncio.Event) -> None:
    await EventStream(events(), stopping)(http_scope(), client.receive, client.send)


@pytest.mark.anyio
async def test_a_stream_ends_after_the_run() -> None:
    client = Client()
    await stream(Events(STEP, None, RUN), client, asyncio.Event())
    assert client.body == b"retry: 1000\n\n" + encode(STEP) + b": ping\n\n" + encode(RUN)
    assert client.complete
    headers = dict(client.sent[0]["headers"])
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert headers[b"x-accel-buffering"] == b"no"


@pytest.mark.anyio
async def test_a_store_that_goes_away_ends_the_stream_cleanly() -> None:
    client = Client()
    await stream(Events(STEP, StoreUnavailable()), client, asyncio.Event())
    assert client.body.endswith(encode(STEP))
    assert client.complete


@pytest.mark.anyio
async def test_a_bug_in_the_stream_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="bug"):
        await stream(Events(STEP, ValueError("bug")), Client(), asyncio.Event())


async def _begun(events: Events, client: Client, stopping: asyncio.Event) -> asyncio.Task[Any]:
    task = asyncio.create_task(stream(events, client, stopping))
    await events.waiting.wait()
    return task


@pytest.mark.anyio
async def test_a_client_that_leaves_ends_the_events() -> None:
    events, client = Events(STEP, endless=True), Client()
    task = await _begun(events, client, asyncio.Event())
    client.left.set()
    await task
    assert events.ended


@pytest.mark.anyio
async def test_a_server_that_stops_ends_the_stream_in_order() -> None:
    events, client, stopping = Events(STEP, endless=True), Client(), asyncio.Event()
    task = await _begun(events, client, stopping)
    stopping.set()
    await task
    assert events.ended
    assert client.complete
