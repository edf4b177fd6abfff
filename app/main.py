"""The API process: the app over its adapters, and the server that runs it.

What only a running process needs is imported when it runs, so that importing this module is quick.
"""

# ruff: noqa: PLC0415
from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    from fastapi import FastAPI
    from prometheus_client import CollectorRegistry

    from app.api.app import Lifespan
    from app.api.state import AppState
    from app.settings import Settings

GRACE_BEYOND_INLINE_WAIT_S = 5.0


def create_app(
    settings: Settings, registry: CollectorRegistry | None = None, stopping: asyncio.Event | None = None
) -> FastAPI:
    """Return the app; its adapters are made when its lifespan begins and closed when it ends.

    `stopping` is what its event streams end at, besides the end of the lifespan.
    """
    from app.observe.exposition import make_registry

    registry = registry or make_registry()
    stopping = stopping or asyncio.Event()
    return _app(settings, registry, lambda _app: _running(settings, registry, stopping))


def serve(settings: Settings, sockets: list[socket.socket] | None = None) -> None:
    """Serve the API until SIGTERM or SIGINT; then nothing new is taken and what runs is finished.

    Raises SettingsError when a setting is wrong.
    """
    import uvloop

    from app.observe.log import configure_logging

    configure_logging(settings.log_level)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, sockets))


async def _serve(settings: Settings, sockets: list[socket.socket] | None) -> None:
    from app.api.server import AssayServer, server_config
    from app.listening import listening_socket
    from app.observe.exposition import make_registry

    sockets = sockets or [listening_socket(settings.host, settings.port)]
    registry, stopping = make_registry(), asyncio.Event()
    # Entered here and not by the server's lifespan, so that a wrong setting is raised and not printed as a crash.
    async with _running(settings, registry, stopping) as state:
        app = _app(settings, registry, lambda _app: contextlib.nullcontext(state))
        grace_s = settings.inline_wait_s + GRACE_BEYOND_INLINE_WAIT_S
        config = server_config(app, host=settings.host, port=settings.port, grace_s=grace_s)
        await AssayServer(config, stopping).serve(sockets)


@asynccontextmanager
async def _running(settings: Settings, registry: CollectorRegistry, stopping: asyncio.Event) -> AsyncIterator[AppState]:
    from app.api.state import AppState
    from app.observe.metrics import QueueMetrics
    from app.observe.queue_watch import watch_queue
    from app.runs.sweep import keep_sweeping
    from app.wiring import build_deps

    async with build_deps(settings, registry) as wired:
        watching = asyncio.create_task(watch_queue(wired.deps.queue, QueueMetrics(registry)))
        sweeping = asyncio.create_task(keep_sweeping(wired.deps))
        try:
            yield AppState(
                deps=wired.deps, check=wired.check, stopping=stopping, max_body_bytes=settings.max_body_bytes
            )
        finally:
            stopping.set()
            watching.cancel()
            sweeping.cancel()


def _app(settings: Settings, registry: CollectorRegistry, lifespan: Lifespan) -> FastAPI:
    from app.api.app import build_app
    from app.observe.exposition import exposition
    from app.observe.metrics import HttpMetrics

    return build_app(
        lifespan=lifespan,
        request_finished=HttpMetrics(registry).request_finished,
        exposition=partial(exposition, registry),
        docs=settings.docs,
    )
