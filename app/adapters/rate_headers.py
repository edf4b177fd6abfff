"""What a provider's rate headers say about when calls may go on."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

# remaining, and when it is more again: a duration (OpenAI and those who copy it) or a date (Anthropic).
_PAIRS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
)
# They speak of minutes or days; what they promise is looked at again after a minute.
LONGEST_EXHAUSTED_S = 60.0
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_SECONDS = re.compile(_NUMBER)
_DURATION = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in ("d", "h", "m(?!s)", "s", "ms")))
_UNITS = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


def exhausted_for_s(headers: Mapping[str, str], now: datetime) -> float:
    """Return for how long nothing remains of a rate limit, 0 when something does or nothing is said.

    `headers` has lower-case names.
    """
    return max(
        (_reset_s(headers.get(reset, ""), now) for left, reset in _PAIRS if _is_zero(headers.get(left))), default=0.0
    )


def _is_zero(remaining: str | None) -> bool:
    return remaining is not None and remaining.strip() in {"0", "0.0"}


def _reset_s(reset: str, now: datetime) -> float:
    """Return the seconds of `1s`, `6m0s`, `250ms`, `2.5` or until an ISO date, never negative; 0 for anything else."""
    text = reset.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    duration = _DURATION.fullmatch(text)
    if duration is not None:
        return sum(float(number) * unit for number, unit in zip(duration.groups(), _UNITS, strict=True) if number)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
