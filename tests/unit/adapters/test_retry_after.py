from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from app.adapters.retries import RetryPolicy
from app.adapters.retry_after import retry_after_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 13:00:30 +0100"}, 30.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": "Mon, 99 Nov 2026 12:00:00 GMT"}, None),
        ({"retry-after": "Mon, 30 Nov 99999999999999 12:00:00 GMT"}, None),
    ],
)
def test_seconds_to_wait(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOW) == expected


def test_waits_reach_further_with_every_retry_up_to_the_ceiling() -> None:
    policy = RetryPolicy(max_retries=10, base_s=0.5, ceiling_s=8.0)

    for retries, reach in enumerate([0.5, 1.0, 2.0, 4.0, 8.0, 8.0]):
        waits = [policy.wait_s(retries, at_least_s=0.0, left_s=1_000.0) for _ in range(500)]
        assert all(wait is not None and 0.0 <= wait <= reach for wait in waits)
        assert max(wait or 0.0 for wait in waits) > reach * 0.9
        assert min(wait or 0.0 for wait in waits) < reach * 0.1


def test_callers_that_failed_together_come_back_apart() -> None:
    policy = RetryPolicy(max_retries=2)

    waits = {policy.wait_s(0, at_least_s=20.0, left_s=1_000.0) for _ in range(50)}

    assert len(waits) == 50
    assert all(wait is not None and wait >= 20.0 for wait in waits)


@pytest.mark.parametrize(
    ("retries", "at_least_s", "left_s"),
    [(2, 0.0, 60.0), (0, 60.0, 60.0), (0, 61.0, 60.0), (0, 0.0, 0.0), (0, 0.0, -1.0)],
)
def test_no_retry_beyond_the_count_or_the_time(retries: int, at_least_s: float, left_s: float) -> None:
    assert RetryPolicy(max_retries=2).wait_s(retries, at_least_s, left_s) is None


def test_no_wait_outlasts_the_time_left() -> None:
    policy = RetryPolicy(max_retries=9, base_s=8.0)

    waits = [policy.wait_s(0, at_least_s=1.0, left_s=5.0) for _ in range(200)]

    assert all(wait is not None and 1.0 <= wait < 5.0 for wait in waits)
