"""Request headers, read as bytes without building a mapping."""

from starlette.types import Scope


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the first value of a header (name in lower case), or None."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """Return all values of a header (name in lower case), in order."""
    return [value for key, value in scope["headers"] if key == name]
