"""How long a provider asks callers to wait."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that `retry-after-ms` or `retry-after` (seconds or an HTTP date) name, never negative.

    `headers` has lower-case names. None when neither header is there or can be read.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    value = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(value):
        return float(value)
    return _until(value, now) if value else None


def _until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
