"""A worker that dies when it is to ask the judge about a text that says POISON: `python -m tests.faults.poisoned`."""

import os

import httpx
from httpx_aiohttp import AiohttpTransport

from worker.__main__ import main

POISON = "venom"
EXIT_STATUS = 9


class PoisonedTransport(AiohttpTransport):
    """Sends what is harmless."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if POISON.encode() in await request.aread():
            os._exit(EXIT_STATUS)
        return await super().handle_async_request(request)


if __name__ == "__main__":
    import app.adapters.judge_http as judge_http

    assert judge_http.AiohttpTransport is AiohttpTransport
    judge_http.AiohttpTransport = PoisonedTransport  # type: ignore[misc]
    main()
