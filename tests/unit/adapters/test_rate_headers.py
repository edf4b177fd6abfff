"""Rate headers that say that nothing remains."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.adapters.rate_headers import exhausted_for_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def seconds(headers: dict[str, str]) -> float:
    return exhausted_for_s(headers, NOW)


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("250ms", 0.25),
        ("2m59.56s", 179.56),
        ("1h2m3s", 3723.0),
        ("1d", 86_400.0),
        ("12", 12.0),
        ("0.5", 0.5),
        ("2026-11-30T12:00:30Z", 30.0),
        ("2026-11-30T13:00:30+01:00", 30.0),
        ("2026-11-30T12:00:30", 30.0),
        ("2026-11-30T11:00:00Z", 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("-1s", 0.0),
        ("1s1m", 0.0),
    ],
)
@pytest.mark.parametrize("kind", ["requests", "tokens"])
def test_the_forms_of_a_reset(kind: str, reset: str, expected: float) -> None:
    openai = {f"x-ratelimit-remaining-{kind}": "0", f"x-ratelimit-reset-{kind}": reset}
    anthropic = {f"anthropic-ratelimit-{kind}-remaining": "0", f"anthropic-ratelimit-{kind}-reset": reset}

    assert seconds(openai) == pytest.approx(expected)
    assert seconds(anthropic) == pytest.approx(expected)


@pytest.mark.parametrize("remaining", ["1", "59", "", "none", "00x"])
def test_while_something_remains_nobody_waits(remaining: str) -> None:
    assert seconds({"x-ratelimit-remaining-requests": remaining, "x-ratelimit-reset-requests": "9s"}) == 0.0


def test_the_longest_of_several_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "7s",
    }

    assert seconds(headers) == 7.0


@given(st.text(max_size=40))
def test_no_header_is_an_error_or_a_negative_wait(reset: str) -> None:
    assert seconds({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": reset}) >= 0.0


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_a_duration_is_read_as_it_was_meant(hours: int, minutes: int, whole: int, milliseconds: int) -> None:
    meant = timedelta(hours=hours, minutes=minutes, seconds=whole, milliseconds=milliseconds).total_seconds()
    headers = {"x-ratelimit-remaining-tokens": "0"}

    for reset in (f"{hours}h{minutes}m{whole}.{milliseconds:03}s", f"{hours}h{minutes}m{whole}s{milliseconds}ms"):
        assert seconds(headers | {"x-ratelimit-reset-tokens": reset}) == pytest.approx(meant)
