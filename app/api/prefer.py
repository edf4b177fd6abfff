"""The Prefer header (RFC 7240): how a caller says how long it wants to wait."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from starlette.types import Scope

from app.api.headers import header_values

MAX_HEADER: Final = 1_000


@dataclass(frozen=True, slots=True)
class Preference:
    """What of Prefer is understood here; `wait_s` is None when no wait was named."""

    respond_async: bool = False
    wait_s: int | None = None


NO_PREFERENCE: Final = Preference()


def preference_of(scope: Scope) -> Preference:
    """Return the caller's preference."""
    values = header_values(scope, b"prefer")
    return parse_prefer(value.decode("latin-1") for value in values) if values else NO_PREFERENCE


def parse_prefer(values: Iterable[str]) -> Preference:
    """Read all Prefer headers; the first of repeated preferences counts, unknown and malformed ones are ignored."""
    combined = ",".join(values)
    if len(combined) > MAX_HEADER:
        return NO_PREFERENCE
    preferences: dict[str, str] = {}
    for item in _split(combined, ","):
        head, *_parameters = _split(item, ";")
        name, _, value = head.partition("=")
        preferences.setdefault(name.strip().lower(), _unquoted(value.strip()))
    return Preference(respond_async=preferences.get("respond-async") == "", wait_s=_seconds(preferences.get("wait")))


def applied(preference: Preference, *, went_async: bool, wait_cap_s: float) -> str | None:
    """Return the value of Preference-Applied: what was asked for and done, the wait as it was capped."""
    honoured = []
    if preference.respond_async and went_async:
        honoured.append("respond-async")
    if preference.wait_s is not None:
        honoured.append(f"wait={min(preference.wait_s, int(wait_cap_s))}")
    return ", ".join(honoured) or None


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside quoted strings."""
    parts, start, quoted, escaped = [], 0, False, False
    for position, char in enumerate(text):
        if escaped:
            escaped = False
        elif quoted and char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif char == separator and not quoted:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return parts


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value


def _seconds(value: str | None) -> int | None:
    if value is None or not (value.isascii() and value.isdigit()):
        return None
    return min(int(value[:10]), 86_400)
