"""The application: routes, handlers of errors and what surrounds every request."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from app import __version__
from app.api import events, health, pages, runs, scorers, scoring
from app.api.middleware import LastResort, Metering, RequestFinished, Tracing
from app.api.openapi import document
from app.api.problems import handlers
from app.api.routing import resource
from app.api.state import AppState

Lifespan = Callable[[Any], AbstractAsyncContextManager[AppState]]


class AssayApp(FastAPI):
    """FastAPI whose document is built from our operations, since its own generator describes other routes."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return document()


def build_app(
    *, lifespan: Lifespan, request_finished: RequestFinished, exposition: health.Exposition, docs: bool
) -> FastAPI:
    """Return the app; nothing is connected before its lifespan begins."""
    return AssayApp(
        title="Assay",
        version=__version__,
        openapi_url=None,
        redirect_slashes=False,
        routes=_routes(exposition, docs=docs),
        lifespan=lifespan,
        exception_handlers=handlers(),
        middleware=[
            Middleware(Tracing),
            Middleware(Metering, request_finished=request_finished),
            Middleware(LastResort),
        ],
    )


def _routes(exposition: health.Exposition, *, docs: bool) -> list[BaseRoute]:
    """Return all routes, the busiest first: they are tried in order."""
    routes: list[BaseRoute] = [
        resource("/v1/scorers/{scorer_id}/runs", POST=scoring.create_run),
        resource("/v1/runs/{run_id}", GET=runs.get_run, DELETE=runs.delete_run),
        resource("/v1/runs", POST=scoring.create_runs, GET=runs.list_runs),
        resource("/v1/runs/{run_id}/events", GET=events.stream_run_events),
        resource("/v1/runs/{run_id}/cancel", POST=runs.cancel_run),
        resource("/v1/runs/{run_id}/retry", POST=runs.retry_run),
        resource("/v1/metrics/{scorer_id}/measure", POST=scoring.measure),
        resource("/v1/scorers", GET=scorers.list_scorers, POST=scorers.create_scorer),
        resource("/v1/scorers/{scorer_id}", GET=scorers.get_scorer, DELETE=scorers.delete_scorer),
        resource("/livez", GET=health.get_liveness),
        resource("/readyz", GET=health.get_readiness),
        resource("/metrics", GET=health.metrics_handler(exposition)),
        resource("/problems/{code}", GET=pages.get_problem),
        resource("/openapi.json", GET=pages.get_openapi),
        resource("/", GET=pages.get_front_page),
    ]
    return [*routes, resource("/docs", GET=pages.get_reference)] if docs else routes
