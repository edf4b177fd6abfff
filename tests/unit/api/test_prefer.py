"""RFC 7240: what is understood, what is ignored, and what is said to be applied."""

import pytest

from app.api.prefer import Preference, applied, parse_prefer


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Preference()),
        ([""], Preference()),
        (["respond-async"], Preference(respond_async=True)),
        (["Respond-Async"], Preference(respond_async=True)),
        (["wait=5"], Preference(wait_s=5)),
        (["WAIT = 5"], Preference(wait_s=5)),
        (['wait="5"'], Preference(wait_s=5)),
        (["respond-async, wait=5"], Preference(respond_async=True, wait_s=5)),
        (["respond-async", "wait=5"], Preference(respond_async=True, wait_s=5)),
        (["wait=5;foo=bar , respond-async ; x"], Preference(respond_async=True, wait_s=5)),
        (['foo="a, respond-async"'], Preference()),
        (['foo="a\\", respond-async"'], Preference()),
        (["handling=lenient, return=minimal"], Preference()),
        (["wait=5, wait=10"], Preference(wait_s=5)),
        (["wait=0"], Preference(wait_s=0)),
        (["wait=99999999999999999999"], Preference(wait_s=86_400)),
        (['respond-async=""'], Preference(respond_async=True)),
    ],
)
def test_understood(values: list[str], expected: Preference) -> None:
    assert parse_prefer(values) == expected


@pytest.mark.parametrize(
    "value",
    ["wait", "wait=", "wait=-1", "wait=1.5", "wait=abc", "wait=٣", "respond-async=no", '"', ",,;;=", "wait=1 2"],
)
def test_malformed_is_ignored(value: str) -> None:
    assert parse_prefer([value]) == Preference()


def test_an_endless_header_is_ignored() -> None:
    assert parse_prefer(["x," * 10_000 + "respond-async"]) == Preference()


@pytest.mark.parametrize(
    ("preference", "went_async", "expected"),
    [
        (Preference(), True, None),
        (Preference(respond_async=True), True, "respond-async"),
        (Preference(respond_async=True), False, None),
        (Preference(wait_s=5), False, "wait=5"),
        (Preference(wait_s=500), False, "wait=60"),
        (Preference(respond_async=True, wait_s=5), True, "respond-async, wait=5"),
    ],
)
def test_only_what_was_done_is_said_to_be_applied(
    preference: Preference, went_async: bool, expected: str | None
) -> None:
    assert applied(preference, went_async=went_async, wait_cap_s=60.0) == expected
