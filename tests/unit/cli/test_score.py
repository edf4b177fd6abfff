"""`assay score` against a service that is a function."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import score as score_module
from app.cli.__main__ import main
from app.cli.console import Mistake
from app.cli.score import _read, _runs

Handler = Callable[[httpx.Request], httpx.Response]


def client(handler: Handler) -> httpx.Client:
    return httpx.Client(base_url="http://assay", transport=httpx.MockTransport(handler))


def test_posts_text_and_scorers_and_returns_the_runs() -> None:
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"runs": [{"runId": "a", "status": "completed"}]})

    request = {"output": "text", "scorers": ["bias"]}
    assert _runs(client(handler), request) == [{"runId": "a", "status": "completed"}]
    assert json.loads(asked[0].content) == request
    assert asked[0].url.path == "/v1/runs"


def test_pending_runs_are_polled_until_they_end() -> None:
    states = iter(["queued", "running", "completed"])

    def handler(request: httpx.Request) -> httpx.Response:
        run = {"runId": "run-1", "status": next(states)}
        return httpx.Response(202, json={"runs": [run]}) if request.method == "POST" else httpx.Response(200, json=run)

    assert _runs(client(handler), {"scorers": ["bias"]})[0]["status"] == "completed"


def test_a_run_that_never_ends_is_left_to_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_module, "LONGEST_WAIT_S", -1.0)
    pending = {"runId": "run-1", "status": "queued"}
    with pytest.raises(Mistake, match="/v1/runs/run-1"):
        _runs(client(lambda _: httpx.Response(202, json={"runs": [pending]})), {"scorers": ["bias"]})


def test_a_problem_is_told_with_every_fault() -> None:
    problem = {
        "title": "The request is not valid",
        "detail": "1 fault",
        "errors": [{"pointer": "#/scorers/0", "code": "unknown_scorer", "detail": "Use one of bias, toxicity"}],
    }
    with pytest.raises(Mistake) as caught:
        _runs(client(lambda _: httpx.Response(422, json=problem)), {"scorers": ["x"]})
    assert str(caught.value).splitlines() == [
        "The request is not valid: 1 fault",
        "#/scorers/0: Use one of bias, toxicity",
    ]


def test_an_answer_of_something_else_is_told() -> None:
    with pytest.raises(Mistake, match="502, but not as Assay does"):
        _runs(client(lambda _: httpx.Response(502, text="<html>")), {"scorers": ["bias"]})


class TestText:
    def test_given(self) -> None:
        assert _read("Hello.") == "Hello."

    def test_from_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "t.txt").write_text("Grüße.", encoding="utf-8")
        assert _read(f"@{tmp_path}/t.txt") == "Grüße."

    def test_from_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("piped"))
        assert _read("-") == "piped"

    @pytest.mark.parametrize(("content", "says"), [(None, "No such file"), (b"\xff\xfe\x00", "not UTF-8")])
    def test_a_file_that_can_not_be_read_is_told(self, tmp_path: Path, content: bytes | None, says: str) -> None:
        path = tmp_path / "t.txt"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(Mistake, match=says):
            _read(f"@{path}")


def test_no_service_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx.Client, "post", refuse)
    monkeypatch.setattr("sys.argv", ["assay", "score", "Hello.", "--url", "http://127.0.0.1:9"])

    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert "assay up" in told[0]
