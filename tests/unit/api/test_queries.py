"""Query strings: known, given once, valid."""

import contextlib
from datetime import UTC, datetime

import pytest

from app.api.queries import ListParameters, NoParameters, RunParameters, WaitParameters, read_query
from app.domain.errors import InvalidRequest
from app.domain.model import Model
from app.domain.run import RunStatus


def scope(query: str) -> dict[str, bytes]:
    return {"query_string": query.encode("latin-1")}


def test_every_filter_reaches_the_store() -> None:
    query = (
        "scorerId=bias&status=failed&createdAfter=2026-01-31T12:00:00Z&createdBefore=2026-02-01T00:00:00.5%2B01:00"
        "&limit=7&cursor=abc&metadata.team=search&metadata.release=7&include=prompts"
    )
    asked = read_query(scope(query), ListParameters).query("acme")
    assert asked.tenant == "acme"
    assert (asked.scorer_id, asked.status, asked.limit, asked.cursor) == ("bias", RunStatus.FAILED, 7, "abc")
    assert asked.created_after == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert asked.created_before == datetime(2026, 1, 31, 23, 0, 0, 500_000, tzinfo=UTC)
    assert asked.metadata == (("team", "search"), ("release", "7"))


@pytest.mark.parametrize(
    ("query", "prompts"),
    [
        ("", True),
        ("include=prompts", True),
        ("include=score,prompts", True),
        ("include=", False),
        ("include=score", False),
    ],
)
def test_prompts_are_left_out_only_by_an_include_that_does_not_name_them(query: str, prompts: bool) -> None:
    assert read_query(scope(query), RunParameters).prompts is prompts


@pytest.mark.parametrize(
    ("model", "query", "pointer"),
    [
        (ListParameters, "limit=0", "#/limit"),
        (ListParameters, "limit=101", "#/limit"),
        (ListParameters, "limit=1_0", "#/limit"),
        (ListParameters, "limit=%201", "#/limit"),
        (ListParameters, "limit=", "#/limit"),
        (ListParameters, "limit=1.0", "#/limit"),
        (ListParameters, "limit=1&limit=2", "#/limit"),
        (ListParameters, "metadata.a=1&metadata.a=2", "#/metadata.a"),
        (ListParameters, "status=done", "#/status"),
        (ListParameters, "createdAfter=2026-01-31", "#/createdAfter"),
        (ListParameters, "createdAfter=1700000000", "#/createdAfter"),
        (ListParameters, "createdAfter=2026-01-31T12:00:00", "#/createdAfter"),
        (ListParameters, "createdAfter=2026-01-31T12:00:00+01:00", "#/createdAfter"),
        (ListParameters, "createdAfter=2026-13-31T12:00:00Z", "#/createdAfter"),
        (ListParameters, "scorerid=bias", "#/scorerid"),
        (ListParameters, "scorer_id=bias", "#/scorer_id"),
        (ListParameters, "metadata.b%20c=1", "#/metadata/b%20c"),
        (ListParameters, "metadata=1&metadata.a=1", "#/metadata"),
        (ListParameters, "cursor=%00", "#/cursor"),
        (ListParameters, "&".join(f"metadata.k{n}=1" for n in range(17)), "#/metadata"),
        (ListParameters, "&".join(f"k{n}=1" for n in range(70)), "#"),
        (WaitParameters, "wait=61", "#/wait"),
        (WaitParameters, "wait=-1", "#/wait"),
        (WaitParameters, "wait=999999999999999999999", "#/wait"),
        (RunParameters, "include=a%20b", "#/include"),
        (NoParameters, "x=1", "#/x"),
    ],
)
def test_everything_else_is_refused_at_its_place(model: type[Model], query: str, pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_query(scope(query), model)
    assert [fault.pointer for fault in caught.value.faults] == [pointer]


@pytest.mark.parametrize("query", ["%", "%ff", "\xff", "=&=", "&&&", "a" * 10_000, "%ed%a0%80=1"])
def test_any_bytes_are_read_or_refused(query: str) -> None:
    with contextlib.suppress(InvalidRequest):
        read_query(scope(query), ListParameters)
