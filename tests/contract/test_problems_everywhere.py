"""Whatever is sent wherever: problem+json, never a 5xx, and nothing of it comes back."""

import json
import socket
from urllib.parse import urlparse

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from tests.contract.running import MAX_BODY_BYTES, RunningApp, settings_for
from tests.contract.shapes import problem, run, unique
from tests.stub_judge.process import StubProcess

BODY_PATHS = ["/v1/scorers/bias/runs", "/v1/scorers/toxicity/runs", "/v1/runs", "/v1/metrics/bias/measure"]
POST_PATHS = [*BODY_PATHS, "/v1/runs/0123456789/cancel", "/v1/runs/0123456789/retry"]
JSON = {"Content-Type": "application/json"}
# What RFC 9110 lets a field value hold; anything else is refused by the HTTP parser before there is a request.
FIELD_BYTES = [9, *range(0x20, 0x7F), *range(0x80, 0x100)]
ODD_BODIES = {
    "empty": b"",
    "bom": b'\xef\xbb\xbf{"output":"a"}',
    "nan": b'{"output":NaN}',
    "nan in options": b'{"output":"a","options":{"scale":NaN}}',
    "nan in metadata": b'{"output":"a","metadata":{"a":NaN}}',
    "infinity": b'{"output":"a","threshold":1e999}',
    "lone surrogate": b'{"output":"\\ud800"}',
    "nul": b'{"output":"a\\u0000b"}',
    "raw nul": b'{"output":"a\x00b"}',
    "deep list": b"[" * 10_000,
    "deep options": b'{"output":"a","options":{"x":' + b"[" * 10_000,
    "cut utf-8": b'{"output":"\xe2\x82"}',
    "huge integer": b'{"output":"a","metadata":{"n":' + b"9" * 5_000 + b"}}",
    "huge integer in options": b'{"output":"a","options":{"scale":' + b"9" * 400 + b"}}",
    "duplicate keys": b'{"output":"a","output":[],"output":5}',
    "two documents": b'{"output":"a"}{"output":"a"}',
    "utf-16": '{"output":"a"}'.encode("utf-16"),
    "a string": b'"a"',
    "null": b"null",
}


def never_a_server_error(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        problem(answer, answer.status_code, answer.json()["code"])


@pytest.mark.parametrize("path", BODY_PATHS)
@pytest.mark.parametrize("body", ODD_BODIES.values(), ids=ODD_BODIES.keys())
def test_odd_bodies_are_refused(api: RunningApp, path: str, body: bytes) -> None:
    answer = api.client.post(path, content=body, headers=JSON)
    never_a_server_error(answer)
    assert answer.status_code in (400, 422)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(POST_PATHS), body=st.binary(max_size=300))
def test_any_bytes(api: RunningApp, path: str, body: bytes) -> None:
    never_a_server_error(api.client.post(path, content=body, headers=JSON))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=10), children, max_size=3),
    max_leaves=10,
)
FIELDS = st.sampled_from(
    [
        "input",
        "context",
        "groundTruth",
        "metadata",
        "options",
        "model",
        "runId",
        "timeoutMs",
        "sampling",
        "scorers",
        "zz",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(BODY_PATHS), fields=st.dictionaries(FIELDS, JSON_VALUES, min_size=1, max_size=3))
def test_any_json_in_any_field(api: RunningApp, path: str, fields: dict[str, object]) -> None:
    body = json.dumps({"output": " ", **fields}).encode("utf-8", "surrogatepass")
    never_a_server_error(api.client.post(path, content=body, headers=JSON))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["Prefer", "Idempotency-Key", "Content-Type", "traceparent", "Content-Encoding"]),
    value=st.lists(st.sampled_from(FIELD_BYTES), min_size=1, max_size=40).map(bytes),
)
def test_any_header(api: RunningApp, name: str, value: bytes) -> None:
    headers = {**JSON, name: value.strip()}
    never_a_server_error(api.client.post(BODY_PATHS[0], content=b'{"output":" "}', headers=headers))


@pytest.mark.parametrize(
    "path", ["/nothing", "/v1", "/v1/runs/", "/v1/runs/0123456789/events/", "/v1/scorers/bias/", "/%00", "/docs/x"]
)
def test_unknown_paths(api: RunningApp, path: str) -> None:
    problem(api.client.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/runs", "GET, HEAD, POST"),
        ("PATCH", "/v1/runs/0123456789", "DELETE, GET, HEAD"),
        ("GET", "/v1/runs/0123456789/cancel", "POST"),
        ("GET", "/v1/scorers/bias/runs", "POST"),
        ("OPTIONS", "/v1/scorers", "GET, HEAD, POST"),
        ("DELETE", "/livez", "GET, HEAD"),
    ],
)
def test_other_methods_are_told_what_is_allowed(api: RunningApp, method: str, path: str, allow: str) -> None:
    answer = api.client.request(method, path)
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allow


@pytest.mark.parametrize("label", [None, "text/plain", "application/json; charset=latin-1", "multipart/form-data"])
@pytest.mark.parametrize("path", BODY_PATHS)
def test_bodies_that_are_not_labelled_as_json(api: RunningApp, path: str, label: str | None) -> None:
    headers = {} if label is None else {"Content-Type": label}
    problem(api.client.post(path, content=b'{"output":"a"}', headers=headers), 415, "unsupported_media_type")


@pytest.mark.parametrize("path", BODY_PATHS)
def test_a_large_body_is_refused_by_its_length(api: RunningApp, path: str) -> None:
    answer = api.client.post(path, content=b"x" * (MAX_BODY_BYTES + 1), headers=JSON)
    problem(answer, 413, "content_too_large")


def test_a_chunked_body_is_refused_before_it_is_read_whole(api: RunningApp) -> None:
    host, port = str(urlparse(api.url).hostname), int(urlparse(api.url).port or 0)
    with socket.create_connection((host, port), timeout=10) as raw:
        raw.sendall(
            b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        # The body never ends; the answer comes all the same.
        raw.sendall(b"%x\r\n%s\r\n" % (MAX_BODY_BYTES + 1, b"x" * (MAX_BODY_BYTES + 1)))
        received = b""
        while not received.endswith(b"}"):
            received += raw.recv(65_536)
    assert received.startswith(b"HTTP/1.1 413")
    assert b"content_too_large" in received


def test_the_callers_trace_is_in_the_problem(api: RunningApp) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    answer = api.client.get("/nothing", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert problem(answer, 404, "not_found")["traceId"] == trace


CANARY = "canary7f3a"


@pytest.mark.parametrize(
    "body",
    [
        {"output": [CANARY]},
        {"output": {"x": CANARY}},
        {"output": "a", "mode": CANARY},
        {"output": "a", "model": f"{CANARY}/x"},
        {"output": "a", "options": {"scale": CANARY}},
        {"output": "a", "options": {"language": CANARY * 10}},
        {"output": "a", "runId": f"{CANARY}!"},
        {"output": "a", "metadata": {"k": [CANARY]}},
        {"output": "a", "sampling": {"rate": CANARY, "key": CANARY}},
        {"output": "a", "scorers": [CANARY]},
    ],
)
@pytest.mark.parametrize("path", BODY_PATHS)
def test_no_submitted_value_comes_back(api: RunningApp, path: str, body: dict[str, object]) -> None:
    answer = api.client.post(path, json=body)
    assert 400 <= answer.status_code < 500
    assert CANARY not in answer.text


def test_without_its_store_the_service_says_so(judge: StubProcess, tmp_path_factory: pytest.TempPathFactory) -> None:
    valkey = start_valkey(tmp_path_factory.mktemp("going-away"))
    try:
        with RunningApp(settings_for(valkey.url, judge.base_url)) as api:
            known = run(api.score(output=unique()), 200)["runId"]
            valkey.stop()
            for method, path in [("GET", f"/v1/runs/{known}"), ("DELETE", f"/v1/runs/{known}"), ("GET", "/v1/runs")]:
                answer = api.client.request(method, path)
                problem(answer, 503, "capacity_reduced")
                assert answer.headers["retry-after"]
            problem(api.score(output=unique()), 503, "capacity_reduced")
            not_ready = api.client.get("/readyz")
            told = problem(not_ready, 503, "capacity_reduced")
            assert {check["name"] for check in told["checks"] if check["needed"] and not check["ok"]} == {"redis"}
            assert api.client.get("/livez").status_code == 200
    finally:
        valkey.stop()


def test_without_a_judge_nothing_is_accepted_that_needs_one(valkey_server: EmbeddedValkey) -> None:
    with RunningApp(settings_for(valkey_server.url, None, judge_model=None)) as api:
        answer = api.score(output="a")
        assert "ASSAY_" in problem(answer, 503, "not_configured")["detail"]
        assert answer.headers["retry-after"]
        problem(api.client.get("/readyz"), 503, "capacity_reduced")
