"""A path and its methods as one ASGI endpoint: no dependency machinery, and 405 with the whole Allow list."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.api.errors import MethodNotAllowed

Handler = Callable[[Request], Awaitable[Response]]

ROUTE_TEMPLATE: Final = "assay.route"


class Resource:
    """What answers at one path, by method; HEAD follows GET."""

    def __init__(self, path: str, handlers: Mapping[str, Handler]) -> None:
        self.path = path
        self.handlers = dict(handlers)
        if "GET" in handlers:
            self.handlers["HEAD"] = handlers["GET"]
        self.allow = ", ".join(sorted(self.handlers))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; raises MethodNotAllowed."""
        scope[ROUTE_TEMPLATE] = self.path
        handler = self.handlers.get(scope["method"])
        if handler is None:
            raise MethodNotAllowed(f"This path takes {self.allow}", {"Allow": self.allow})
        response = await handler(Request(scope, receive))
        await response(scope, receive, send)


def resource(path: str, **handlers: Handler) -> Route:
    """Return the route of a path, handlers by method name."""
    return Route(path, Resource(path, handlers), name=path)
