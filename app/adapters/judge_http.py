"""HTTP to the judges: the only file that knows httpx and aiohttp."""

import asyncio
from collections.abc import Callable, Mapping
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from app.adapters.chat_outcome import Answer, CallFailed, Outcome
from app.domain.errors import JudgeTimeout, NotConfigured

MAX_ANSWER_BYTES = 4 * 1024 * 1024
# Shorter than the 5 s after which servers on uvicorn (vLLM and others) close an idle connection, so that a call seldom
# starts on one that is just being closed.
_IDLE_S = 4.0
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}

Transport = Callable[[str | None], httpx.AsyncBaseTransport]


class JudgeHttp:
    """The connections of a process to all of its judges.

    Requests go straight to the transport: a client would add cookies, redirects and authentication, none of which a
    judge call wants, at twice the cost. httpx's own pool costs O(connections^2); aiohttp's, here without a limit, does
    not. The number of calls is bounded by each judge's own semaphore.
    """

    def __init__(self, connect_timeout_s: float, transport: Transport | None = None) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._make = transport or _pooled()
        self._transports: dict[str | None, httpx.AsyncBaseTransport] = {}

    def endpoint(self, url: str, headers: Mapping[str, str]) -> "Endpoint":
        """Return the place to post to; raises ValueError when the environment names a proxy that can't be used."""
        target = httpx.URL(url)
        proxy = _proxy_for(target)
        if proxy not in self._transports:
            self._transports[proxy] = self._make(proxy)
        return Endpoint(self._transports[proxy], target, headers, self._connect_timeout_s)

    async def aclose(self) -> None:
        """Close every connection; aiohttp warns about sessions that were left to the garbage collector."""
        for transport in self._transports.values():
            await transport.aclose()


class Endpoint:
    """One judge's URL with the headers of every request."""

    def __init__(
        self, transport: httpx.AsyncBaseTransport, url: httpx.URL, headers: Mapping[str, str], connect_timeout_s: float
    ) -> None:
        self._transport = transport
        self._url = url
        self._headers = httpx.Headers({"content-type": "application/json", **headers})
        self._connect_timeout_s = connect_timeout_s

    async def post(self, body: bytes, timeout_s: float) -> Answer:
        """Send body and return the whole answer, whatever its status; redirects are not followed.

        Raises CallFailed: no connection, a dropped one, no answer in time, or one beyond MAX_ANSWER_BYTES.
        """
        connect_s = min(self._connect_timeout_s, timeout_s)
        limits = {"connect": connect_s, "read": timeout_s, "write": timeout_s, "pool": None}
        request = httpx.Request("POST", self._url, headers=self._headers, content=body, extensions={"timeout": limits})
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(request)
        except TimeoutError:
            raise _timed_out(timeout_s) from None
        except httpx.DecodingError:
            raise CallFailed(Outcome.INVALID_BODY, "The judge model's answer could not be decompressed") from None
        except (httpx.TransportError, aiohttp.ClientError, OSError) as error:
            # `from None`: the cause holds the request, and the request its key and text.
            raise _lost(error, timeout_s) from None

    async def _exchange(self, request: httpx.Request) -> Answer:
        response = await self._transport.handle_async_request(request)
        try:
            chunks, size = [], 0
            async for chunk in response.aiter_bytes():
                size += len(chunk)
                if size > MAX_ANSWER_BYTES:
                    detail = f"The judge model's answer is larger than {MAX_ANSWER_BYTES} bytes"
                    raise CallFailed(Outcome.INVALID_BODY, detail)
                chunks.append(chunk)
        finally:
            await response.aclose()
        return Answer(response.status_code, response.headers, b"".join(chunks))


def _pooled() -> Transport:
    """Return a maker of transports that share one TLS context."""
    context = httpx.create_ssl_context()

    def session() -> aiohttp.ClientSession:
        """Called by the transport inside the running loop, at the first request."""
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S, ssl=context)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    def transport(proxy: str | None) -> httpx.AsyncBaseTransport:
        return AiohttpTransport(verify=context, proxy=httpx.Proxy(proxy) if proxy else None, client=session)

    return transport


def _proxy_for(url: httpx.URL) -> str | None:
    """Return the environment's proxy for this URL; loopback judges are never behind one."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or url.host in _LOOPBACK or proxy_bypass(url.host):
        return None
    if not proxy.startswith(("http://", "https://")):
        raise ValueError(f"{url.scheme.upper()}_PROXY or ALL_PROXY: only http:// and https:// proxies are supported")
    return proxy


def _timed_out(timeout_s: float) -> CallFailed:
    return CallFailed(Outcome.TIMEOUT, f"The judge model did not answer within {timeout_s:.3g} s", becomes=JudgeTimeout)


def _lost(error: Exception, timeout_s: float) -> CallFailed:
    """Return what an exception of the transport means.

    It is told by aiohttp's exception underneath: the transport calls a dropped connection a connect timeout.
    """
    origin = error.__cause__ if isinstance(error.__cause__, aiohttp.ClientError) else error
    if isinstance(origin, aiohttp.ConnectionTimeoutError | httpx.ConnectTimeout):
        detail = "The judge model's server can't be reached in time: check its base URL"
        return CallFailed(Outcome.TIMEOUT, detail, becomes=JudgeTimeout)
    if isinstance(origin, TimeoutError | httpx.TimeoutException):
        return _timed_out(timeout_s)
    if isinstance(origin, aiohttp.ClientConnectorCertificateError):
        detail = "The judge model's TLS certificate is not trusted: set SSL_CERT_FILE to its authority"
        return CallFailed(Outcome.CONNECTION, detail, becomes=NotConfigured, retry=False)
    if isinstance(origin, aiohttp.ClientConnectorError | httpx.ConnectError | httpx.ProxyError):
        return CallFailed(Outcome.CONNECTION, "The judge model's server can't be reached: check its base URL")
    return CallFailed(Outcome.CONNECTION, "The connection to the judge model's server broke")
