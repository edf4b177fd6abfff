"""The worker's ear: it never waits for a connection that is dead."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.adapters import redis_pubsub
from app.adapters.redis_client import connect
from worker.commands import Commands


@asynccontextmanager
async def deaf_server(accepted: asyncio.Semaphore) -> AsyncIterator[int]:
    """Accept connections and never answer on them, as a host that lost power does; gives the port."""
    held: list[asyncio.StreamWriter] = []

    def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        accepted.release()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for writer in held:
            writer.close()


@pytest.mark.anyio
@pytest.mark.parametrize("login", ["", ":password@"])
async def test_a_peer_that_never_answers_is_left_for_a_new_connection(
    monkeypatch: pytest.MonkeyPatch, login: str
) -> None:
    monkeypatch.setattr(redis_pubsub, "SILENCE_S", 0.05)
    monkeypatch.setattr(redis_pubsub, "RECONNECT_S", 0.05)
    accepted = asyncio.Semaphore(0)
    async with deaf_server(accepted) as port, connect(f"redis://{login}127.0.0.1:{port}") as client:
        listening = asyncio.create_task(Commands(client, "channel", lambda _: None).run())
        async with asyncio.timeout(10):
            for _ in range(3):
                await accepted.acquire()
        listening.cancel()
        await asyncio.wait({listening})
