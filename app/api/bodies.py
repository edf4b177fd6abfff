"""Request bodies: labelled as JSON, bounded, in time, and parsed once from the raw bytes."""

import asyncio
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from app.api.errors import BodyTooSlow, ContentTooLarge, MalformedJson, UnsupportedMediaType
from app.api.headers import header
from app.api.state import state_of
from app.domain.errors import InvalidRequest
from app.domain.faults import faults_of

BODY_TIMEOUT_S: Final = 30.0
UTF8_NAMES: Final = frozenset({b"utf-8", b"utf8", b"us-ascii"})

M = TypeVar("M", bound=BaseModel)


async def read_model(request: Request, model: type[M]) -> M:
    """Return the body as a model.

    Raises UnsupportedMediaType, ContentTooLarge, BodyTooSlow, MalformedJson and InvalidRequest.
    """
    check_media_type(request)
    return parse_model(await read_body(request), model)


def check_media_type(request: Request) -> None:
    """Raise UnsupportedMediaType unless the body is labelled as plain JSON in UTF-8."""
    label = header(request.scope, b"content-type") or b""
    if label != b"application/json" and not _is_json(label):
        raise UnsupportedMediaType("Send Content-Type: application/json", {"Accept": "application/json"})
    encoding = header(request.scope, b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise UnsupportedMediaType("Send the body without Content-Encoding", {"Accept-Encoding": "identity"})


def _is_json(label: bytes) -> bool:
    kind, *parameters = (part.strip().lower() for part in label.split(b";"))
    if kind != b"application/json" and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
        return False
    charsets = [value.strip(b'"') for name, _, value in (p.partition(b"=") for p in parameters) if name == b"charset"]
    return all(charset in UTF8_NAMES for charset in charsets)


async def read_body(request: Request) -> bytes:
    """Return the body; raises ContentTooLarge as soon as it is known to be, BodyTooSlow after 30 s."""
    limit = state_of(request.scope)["max_body_bytes"]
    declared = header(request.scope, b"content-length")
    if declared is not None and declared.isdigit() and (len(declared) > 15 or int(declared) > limit):
        raise _too_large(limit)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await _collect(request, limit)
    except TimeoutError:
        raise BodyTooSlow("Send the whole body within 30 seconds", {"Connection": "close"}) from None


async def _collect(request: Request, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message: Message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> ContentTooLarge:
    # The connection stays open: closing it under a client that still sends would reset it, and the answer be lost.
    return ContentTooLarge(f"Send at most {limit} bytes")


def parse_model(raw: bytes, model: type[M]) -> M:
    """Return JSON bytes as a model, types taken strictly; raises MalformedJson or InvalidRequest."""
    try:
        return model.model_validate_json(raw, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            # The parser's message is a kind and a place, never a piece of the body.
            raise MalformedJson(f"Send one JSON document in UTF-8: {first['ctx']['error']}") from None
        raise InvalidRequest("The request has faults; see errors", faults_of(error, from_json(raw))) from None
