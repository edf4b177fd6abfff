"""uvicorn, set up for this service."""

import asyncio
import contextlib
import gc
import math
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from app.api.plain_http import PlainHttpProtocol

GC_THRESHOLD: Final = 50_000
LINGER_S: Final = 1.5
LOOK_AGAIN_S: Final = 0.05
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def server_config(app: ASGIApp, *, host: str, port: int, grace_s: float) -> uvicorn.Config:
    """Return the server's configuration; `grace_s` is how long a stopping server finishes requests."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http=PlainHttpProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(max(grace_s - LINGER_S, 0.0)),
    )


class AssayServer(uvicorn.Server):
    """Tells the app at once that it stops, and leaves the way out of the process to its caller.

    Stopping, it refuses new connections at once but lets the open ones send one more request each, for a moment: load
    that moves to another process then loses none.
    """

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, then take what is loaded out of garbage collection."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, linger for what is on its way, then finish what runs and close what is idle."""
        await self._stop_listening(sockets or [])
        for connection in list(self.server_state.connections):
            if isinstance(connection, PlainHttpProtocol):
                connection.drain()
        loop = asyncio.get_running_loop()
        end = loop.time() + LINGER_S
        while self.server_state.connections and loop.time() < end and not self.force_exit:  # noqa: ASYNC110 - uvicorn's
            await asyncio.sleep(LOOK_AGAIN_S)
        await super().shutdown(sockets)

    async def _stop_listening(self, sockets: list[socket.socket]) -> None:
        """Close the listening sockets; connections that wait to be accepted, which that would reset, are taken yet."""
        accepted = []
        for listening in sockets:
            with contextlib.suppress(OSError):
                while True:
                    accepted.append(listening.accept()[0])
        for server in self.servers:
            server.close()
        for listening in sockets:
            listening.close()
        loop = asyncio.get_running_loop()
        for connection in accepted:
            connection.setblocking(False)
            await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> PlainHttpProtocol:
        return PlainHttpProtocol(self.config, self.server_state, self.lifespan.state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second SIGINT stops waiting for requests."""
        self._stopping.set()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals on the loop; uvicorn would raise them again and so end the process before adapters close."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
