"""What people look at: the front page, the reference, the meaning of a problem, and the OpenAPI document."""

import re
from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import JSON
from app.api.explanations import EXPLANATIONS
from app.api.headers import header
from app.api.openapi import document_json
from app.api.problems import STATUS
from app.api.reference import render_reference
from app.domain.errors import ErrorCode, NotFound

WEB: Final = Path(__file__).parent.parent / "web"
# Pages carry their own style and nothing else; no script runs and nothing is loaded from elsewhere.
PAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
HTML: Final = "text/html"
EXAMPLE_HOST: Final = "localhost:8000"

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?", re.ASCII)


@cache
def _style() -> str:
    return (WEB / "style.css").read_text(encoding="utf-8")


@cache
def _front_page() -> str:
    return (WEB / "index.html").read_text(encoding="utf-8").replace("/* style.css */", _style())


@cache
def _reference() -> str:
    return render_reference(_style())


async def get_front_page(request: Request) -> Response:
    """Say what this is and how to try it, at the address it was asked for."""
    asked = (header(request.scope, b"host") or b"").decode("latin-1")
    host = asked if _HOST.fullmatch(asked) else EXAMPLE_HOST
    return Response(_front_page().replace(EXAMPLE_HOST, host), 200, PAGE_HEADERS, HTML)


async def get_reference(request: Request) -> Response:  # noqa: ARG001 - one signature for all handlers
    """Show the OpenAPI document as a page."""
    return Response(_reference(), 200, PAGE_HEADERS, HTML)


async def get_openapi(request: Request) -> Response:  # noqa: ARG001
    """Answer with the OpenAPI document."""
    return Response(document_json(), 200, media_type=JSON)


async def get_problem(request: Request) -> Response:
    """Explain a problem code."""
    try:
        code = ErrorCode(request.path_params["code"])
    except ValueError:
        raise NotFound("There is no such problem code") from None
    return Response(f"{code} ({STATUS[code]})\n\n{EXPLANATIONS[code]}\n", 200, media_type="text/plain")
