"""Runs as responses: representations, entity tags and conditional requests."""

import json

import pytest

from app.api.answers import entity_tag, listing, represent, run_response
from app.api.queries import RunParameters
from app.domain.run import RunStatus
from app.ports import StoredRun
from tests.unit.api.asgi import http_scope

BODY = (
    b'{"runId":"run-00000001","preprocessPrompt":"p","analyzePrompt":null,"generateReasonPrompt":"r",'
    b'"metadata":{"n":123456789012345678901234567890,"t":"\xc3\xa9"}}'
)
TAG = entity_tag(BODY)
ALL, WITHOUT = RunParameters(), RunParameters(include="")


def stored(status: RunStatus = RunStatus.COMPLETED) -> StoredRun:
    return StoredRun(body=BODY, status=status, fingerprint="f")


def test_the_stored_bytes_are_the_answer() -> None:
    assert represent(BODY, ALL) is BODY


def test_without_prompts_all_else_is_unchanged() -> None:
    assert json.loads(represent(BODY, WITHOUT)) == {
        "runId": "run-00000001",
        "metadata": {"n": 123456789012345678901234567890, "t": "é"},
    }


def test_each_representation_has_its_own_strong_tag() -> None:
    tags = {entity_tag(represent(BODY, ALL)), entity_tag(represent(BODY, WITHOUT)), entity_tag(b"{}")}
    assert len(tags) == 3
    assert all(tag.startswith('"') and tag.endswith('"') for tag in tags)
    assert entity_tag(bytes(bytearray(BODY))) == entity_tag(BODY)


@pytest.mark.parametrize("sent", [TAG, f"W/{TAG}", f'"x", {TAG}', f'"x",W/{TAG} ', "*"])
def test_a_known_representation_is_not_sent_again(sent: str) -> None:
    response = run_response(http_scope(headers=[(b"if-none-match", sent.encode())]), stored(), ALL)
    assert response.status_code == 304
    assert response.body == b""
    assert response.headers["etag"] == TAG


@pytest.mark.parametrize("sent", ["", TAG.strip('"'), TAG[:-2] + '"', f"w/{TAG}", "\xff"])
def test_an_unknown_one_is(sent: str) -> None:
    response = run_response(http_scope(headers=[(b"if-none-match", sent.encode("latin-1"))]), stored(), ALL)
    assert (response.status_code, response.body) == (200, BODY)


@pytest.mark.parametrize("status", list(RunStatus))
def test_retry_after_as_long_as_the_run_has_not_ended(status: RunStatus) -> None:
    response = run_response(http_scope(), stored(status), ALL)
    assert response.status_code == 200
    assert ("retry-after" in response.headers) == (not status.ended)


@pytest.mark.parametrize(("items", "cursor"), [([], None), ([b'{"a":1}', b'{"b":"\xc3\xa9"}'], 'x"y')])
def test_lists_have_items_and_a_cursor(items: list[bytes], cursor: str | None) -> None:
    assert json.loads(listing(items, cursor).body) == {
        "items": [json.loads(item) for item in items],
        "nextCursor": cursor,
    }
