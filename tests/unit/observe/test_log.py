"""Logs: one JSON object a line, whoever writes it, and nothing of what callers sent."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from app.domain.errors import JudgeTimeout
from app.observe.log import configure_logging, describe_exception


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, handlers, level = logging.getLogger(), logging.getLogger().handlers, logging.getLogger().level
    stream = io.StringIO()
    yield stream
    structlog.reset_defaults()
    root.handlers, root.level = handlers, level


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail_with_a_secret() -> None:
    secret = "canary text of a caller"
    raise ValueError(f"could not use {secret}")


def test_events_and_records_are_json_lines(stream: io.StringIO) -> None:
    configure_logging("info", stream)
    structlog.contextvars.bind_contextvars(trace_id="abc")
    structlog.get_logger().info("run_finished", run_id="run-00000001")
    structlog.get_logger().debug("unseen")
    logging.getLogger("uvicorn.error").warning("odd %s", "request")
    structlog.contextvars.clear_contextvars()
    ours, theirs = lines(stream)
    assert (ours["event"], ours["level"], ours["run_id"], ours["trace_id"]) == (
        "run_finished",
        "info",
        "run-00000001",
        "abc",
    )
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("odd request", "warning", "uvicorn.error")
    assert ours["timestamp"].endswith("Z")


@pytest.mark.parametrize("through", ["structlog", "logging"])
def test_a_traceback_has_places_but_no_message_and_no_locals(stream: io.StringIO, through: str) -> None:
    configure_logging("info", stream)
    try:
        fail_with_a_secret()
    except ValueError:
        if through == "structlog":
            structlog.get_logger().exception("request_failed")
        else:
            logging.getLogger("somewhere").exception("request_failed")
    (entry,) = lines(stream)
    assert entry["exception"]["type"] == "ValueError"
    assert entry["exception"]["frames"][-1].endswith("fail_with_a_secret")
    assert "canary" not in stream.getvalue()


def described(error: BaseException) -> dict[str, Any]:
    return describe_exception((type(error), error, None))


def test_our_own_details_and_the_systems_words_are_kept() -> None:
    assert described(JudgeTimeout("no answer within 60 s"))["detail"] == "no answer within 60 s"
    assert described(ConnectionRefusedError(111, "Connection refused"))["detail"] == "Connection refused"
    assert "detail" not in described(KeyError("canary"))


def test_causes_and_groups_are_followed_but_not_for_ever() -> None:
    error = cause = ValueError()
    for _ in range(50):
        cause.__cause__ = ValueError()
        cause = cause.__cause__
    group = ExceptionGroup("canary", [KeyError("canary"), error])
    assert [inner["type"] for inner in described(group)["exceptions"]] == ["KeyError", "ValueError"]
    depth, entry = 0, described(error)
    while "cause" in entry:
        depth, entry = depth + 1, entry["cause"]
    assert depth == 5


def test_debug_records_of_libraries_stay_out(stream: io.StringIO) -> None:
    configure_logging("debug", stream)
    logging.getLogger("httpx").info("POST https://judge.example/v1")
    logging.getLogger("some.client").debug("body: canary")
    structlog.get_logger().debug("seen")
    assert [entry["event"] for entry in lines(stream)] == ["seen"]
