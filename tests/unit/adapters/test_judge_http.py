import gzip
import ssl

import aiohttp
import httpx
import pytest
from aiohttp.client_reqrep import ConnectionKey

from app.adapters.chat_outcome import CallFailed, Outcome
from app.adapters.judge_http import MAX_ANSWER_BYTES, JudgeHttp
from app.domain.errors import AssayError, JudgeTimeout, JudgeUnavailable, NotConfigured

pytestmark = pytest.mark.anyio

URL = "https://judge.example.com/v1/chat/completions"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def serving(response: httpx.Response) -> JudgeHttp:
    return JudgeHttp(5.0, transport=lambda _: httpx.MockTransport(lambda _: response))


async def test_the_answer_is_read_whole_and_decompressed() -> None:
    stream = httpx.ByteStream(gzip.compress(b"{}" * 1_000))
    response = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=stream)

    answer = await serving(response).endpoint(URL, {}).post(b"{}", 1.0)

    assert answer.body == b"{}" * 1_000


SPACES = b" " * (MAX_ANSWER_BYTES + 1)


@pytest.mark.parametrize(
    ("encoding", "content"), [("identity", SPACES), ("gzip", gzip.compress(SPACES)), ("gzip", b"this is not gzip")]
)
async def test_an_answer_too_large_or_unreadable_is_no_answer(encoding: str, content: bytes) -> None:
    headers = {"content-encoding": encoding}
    response = httpx.Response(200, headers=headers, stream=httpx.ByteStream(content))

    with pytest.raises(CallFailed) as caught:
        await serving(response).endpoint(URL, {}).post(b"{}", 5.0)

    assert caught.value.outcome is Outcome.INVALID_BODY


def test_the_key_is_in_no_repr() -> None:
    endpoint = serving(httpx.Response(200)).endpoint(URL, {"api-key": "sk-test", "authorization": "Bearer sk-test"})

    assert "sk-test" not in repr(endpoint)


def proxies_used(url: str) -> list[str | None]:
    used: list[str | None] = []

    def transport(proxy: str | None) -> httpx.AsyncBaseTransport:
        used.append(proxy)
        return httpx.MockTransport(lambda _: httpx.Response(200))

    http = JudgeHttp(5.0, transport=transport)
    http.endpoint(url, {})
    http.endpoint(url, {})
    return used


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, URL, None),
        ({"https_proxy": "http://proxy:3128"}, URL, "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128"}, URL, "http://proxy:3128"),
        ({"all_proxy": "http://proxy:3128"}, URL, "http://proxy:3128"),
        ({"http_proxy": "http://proxy:3128"}, URL, None),
        ({"https_proxy": "http://proxy:3128", "no_proxy": "example.com"}, URL, None),
        ({"https_proxy": "http://proxy:3128", "no_proxy": "*"}, URL, None),
        ({"http_proxy": "http://proxy:3128"}, "http://127.0.0.1:8000/v1/chat/completions", None),
        ({"http_proxy": "http://proxy:3128"}, "http://localhost:8000/v1/chat/completions", None),
        ({"http_proxy": "http://proxy:3128"}, "http://[::1]:8000/v1/chat/completions", None),
        ({"http_proxy": "http://proxy:3128"}, "http://10.0.0.5:8000/v1/chat/completions", "http://proxy:3128"),
    ],
)
def test_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str, proxy: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert proxies_used(url) == [proxy]


def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://user:secret@proxy:1080")

    with pytest.raises(ValueError, match="ALL_PROXY") as caught:
        proxies_used(URL)

    assert "secret" not in str(caught.value)


PLACE = ConnectionKey("judge.example.com", 443, True, True, None, None, None)


@pytest.mark.parametrize(
    ("wrapper", "cause", "outcome", "becomes", "retry"),
    [
        (httpx.ConnectTimeout, aiohttp.ServerDisconnectedError(), Outcome.CONNECTION, JudgeUnavailable, True),
        (httpx.ConnectTimeout, aiohttp.ClientOSError(104, "reset"), Outcome.CONNECTION, JudgeUnavailable, True),
        (httpx.ReadError, aiohttp.ClientPayloadError("cut"), Outcome.CONNECTION, JudgeUnavailable, True),
        (httpx.TimeoutException, aiohttp.ConnectionTimeoutError("slow"), Outcome.TIMEOUT, JudgeTimeout, True),
        (httpx.ReadTimeout, aiohttp.SocketTimeoutError("slow"), Outcome.TIMEOUT, JudgeTimeout, True),
        (
            httpx.ConnectError,
            aiohttp.ClientConnectorError(PLACE, ConnectionRefusedError()),
            Outcome.CONNECTION,
            JudgeUnavailable,
            True,
        ),
        (
            httpx.ConnectError,
            aiohttp.ClientConnectorCertificateError(PLACE, ssl.SSLCertVerificationError()),
            Outcome.CONNECTION,
            NotConfigured,
            False,
        ),
    ],
)
async def test_what_broke_is_told_by_the_cause_and_not_by_the_transports_name_for_it(
    wrapper: type[httpx.TransportError],
    cause: aiohttp.ClientError,
    outcome: Outcome,
    becomes: type[AssayError],
    retry: bool,
) -> None:
    def break_off(_: httpx.Request) -> httpx.Response:
        raise wrapper("sk-test") from cause

    http = JudgeHttp(5.0, transport=lambda _: httpx.MockTransport(break_off))

    with pytest.raises(CallFailed) as caught:
        await http.endpoint(URL, {}).post(b"{}", 1.0)

    failed = caught.value
    assert (failed.outcome, failed.becomes, failed.retry) == (outcome, becomes, retry)
    assert "sk-test" not in failed.detail
