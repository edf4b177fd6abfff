"""What the lifespan hands to every request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypedDict, cast

from starlette.types import Scope

from app.domain.readiness import ReadinessCheck
from app.runs.deps import Deps


class AppState(TypedDict):
    """Set at start, never changed; `stopping` is set when the server begins to shut down."""

    deps: Deps
    check: Callable[[], Awaitable[Sequence[ReadinessCheck]]]
    stopping: asyncio.Event
    max_body_bytes: int


def state_of(scope: Scope) -> AppState:
    """Return the state of the running app."""
    return cast(AppState, scope["state"])


def deps_of(scope: Scope) -> Deps:
    """Return what run semantics need."""
    return state_of(scope)["deps"]
