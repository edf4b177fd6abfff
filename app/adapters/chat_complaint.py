"""What a provider says is wrong with a request, whatever shape it says it in."""

import re
from dataclasses import dataclass
from typing import Any

import orjson

# Enough for any real message; a body that echoes the prompt is not searched to its end.
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Complaint:
    """The words of an error body, in lower case. For decisions only: never shown, never logged."""

    text: str = ""
    code: str = ""
    param: str = ""

    def mentions(self, *phrases: str) -> bool:
        """Return whether any of the phrases stands in the message, the code or the name of the parameter."""
        return any(phrase in said for phrase in phrases for said in (self.text, self.code, self.param))

    def names(self, parameter: str) -> bool:
        """Return whether the complaint is about this request parameter."""
        if self.param:
            return self.param == parameter
        return re.search(rf"(?<![a-z_]){re.escape(parameter)}(?![a-z_])", self.text) is not None


def read_complaint(body: bytes) -> Complaint:
    """Return the message, code and parameter named in an error body; a plain text body is the message."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Complaint(text=body[:_LONGEST].decode("utf-8", "replace").lower())
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return Complaint()
    error = document.get("error") or document
    if isinstance(error, str):
        return Complaint(text=error[:_LONGEST].lower())
    return _from_object(error) if isinstance(error, dict) else Complaint()


def _from_object(error: dict[str, Any]) -> Complaint:
    metadata = error.get("metadata")
    relayed = metadata.get("raw") if isinstance(metadata, dict) else None
    inner = error.get("innererror")
    inner_code = inner.get("code") if isinstance(inner, dict) else None
    messages = (error.get("message"), relayed, _from_detail(error.get("detail")))
    codes = (error.get("code"), error.get("type"), error.get("status"), inner_code)
    return Complaint(
        text=" ".join(message[:_LONGEST] for message in messages if isinstance(message, str)).lower(),
        code=" ".join(str(code)[:100] for code in codes if code is not None).lower(),
        param=str(error.get("param") or "").lower(),
    )


def _from_detail(detail: Any) -> str | None:
    """Return the text of FastAPI's `detail`; of its list only where and what, since `input` echoes the prompt."""
    if isinstance(detail, str):
        return detail
    if not isinstance(detail, list):
        return None
    faults = [fault for fault in detail[:20] if isinstance(fault, dict)]
    return " ".join(f"{'.'.join(map(str, fault.get('loc') or ()))} {fault.get('msg')}" for fault in faults)
