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
        timeout_graceful_shutdown=math.ceil(grace_s),
    )


class AssayServer(uvicorn.Server):
    """Tells the app at once that it stops, and leaves the way out of the process to its caller."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, then take what is loaded out of garbage collection."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)

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
