"""The Idempotency-Key header: quoted as the draft has it, or bare as clients send it."""

import re
from typing import Final

from starlette.types import Scope

from app.api.headers import header_values
from app.domain.errors import Fault, InvalidRequest

MAX_KEY: Final = 255
REPLAYED: Final = {"Idempotent-Replayed": "true"}

_QUOTED = re.compile(r'"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_BARE = re.compile(r"[\x21-\x7e]+")


def idempotency_key_of(scope: Scope) -> str | None:
    """Return the caller's key, None when there is none; raises InvalidRequest when it can't be one."""
    values = header_values(scope, b"idempotency-key")
    if not values:
        return None
    key = parse_key(values[0].decode("latin-1").strip()) if len(values) == 1 else None
    if key is None:
        detail = f"Send one key of 1 to {MAX_KEY} printable ASCII characters, quoted or bare"
        raise InvalidRequest(
            "A header has a fault; see errors",
            (Fault(pointer="#/Idempotency-Key", code="idempotency_key", detail=detail),),
        )
    return key


def parse_key(text: str) -> str | None:
    """Return the key a header value holds, or None; the same key quoted and bare is one key."""
    if text.startswith('"'):
        quoted = _QUOTED.fullmatch(text)
        key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    else:
        key = text if _BARE.fullmatch(text) else ""
    return key if 1 <= len(key) <= MAX_KEY else None
