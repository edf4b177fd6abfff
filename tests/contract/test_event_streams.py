"""Events of a run over the wire."""

import json
import threading
from typing import Any

import httpx
import pytest

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.contract.running import RunningApp, settings_for
from tests.contract.shapes import pointers, problem, run, unique
from tests.stub_judge.process import StubProcess

Event = dict[str, str]


def parse(text: str) -> list[Event]:
    """Return the events of a stream, by the rules of the event-stream format that we use."""
    blocks = [block for block in text.split("\n\n") if block and not block.startswith((":", "retry:"))]
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


def stream(api: RunningApp, run_id: str, **request: Any) -> httpx.Response:
    return api.client.get(f"/v1/runs/{run_id}/events", **request)


@pytest.fixture(scope="module")
def ended(running_app: RunningApp, judge: StubProcess) -> dict[str, Any]:
    judge.reset()
    return run(running_app.score(output=unique()), 200)


def test_every_step_then_the_run_then_the_end(api: RunningApp, ended: dict[str, Any]) -> None:
    answer = stream(api, ended["runId"])
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.text.startswith("retry: ")
    events = parse(answer.text)
    assert [event["event"] for event in events] == ["step", "step", "step", "run"]
    assert json.loads(events[-1]["data"])["runId"] == ended["runId"]
    assert len({event["id"] for event in events}) == 4


def test_a_reconnecting_client_goes_on_after_its_last_event(api: RunningApp, ended: dict[str, Any]) -> None:
    events = parse(stream(api, ended["runId"]).text)
    by_header = stream(api, ended["runId"], headers={"Last-Event-ID": events[1]["id"]})
    by_query = stream(api, ended["runId"], params={"lastEventId": events[1]["id"]})
    assert parse(by_header.text) == parse(by_query.text) == events[2:]


@pytest.mark.parametrize("last", ["nonsense", "\xff", "x" * 500, "-1", "99999999999999999999-0"])
def test_a_last_event_id_that_is_none_breaks_nothing(api: RunningApp, ended: dict[str, Any], last: str) -> None:
    answer = stream(api, ended["runId"], headers={"Last-Event-ID": last.encode("latin-1")})
    assert answer.status_code in (200, 422)


def test_faults_are_problems(api: RunningApp, ended: dict[str, Any]) -> None:
    problem(stream(api, "unknown-run-id"), 404, "not_found")
    told = problem(stream(api, ended["runId"], params={"after": "1"}), 422, "invalid_request")
    assert pointers(told) == ["#/after"]


def test_a_stopping_server_ends_its_streams(valkey_server: EmbeddedValkey, judge: StubProcess) -> None:
    with RunningApp(settings_for(valkey_server.url, judge.base_url)) as api:
        waiting = run(api.score(output=unique(), mode="queued"), 202)
        ended = threading.Event()
        opened = threading.Event()

        def listen() -> None:
            with httpx.stream("GET", f"{api.url}/v1/runs/{waiting['runId']}/events", timeout=20) as answer:
                for _ in answer.iter_raw():
                    opened.set()
            ended.set()

        listener = threading.Thread(target=listen)
        listener.start()
        assert opened.wait(10)
        api.stop()
        listener.join(10)
        assert ended.is_set()
