"""From the base URL that an operator has at hand to the URL of chat completions."""

import re
from urllib.parse import SplitResult, parse_qsl, urlsplit, urlunsplit

_COMPLETIONS = "/chat/completions"
_VERSION = re.compile(r"v[0-9]+[a-z0-9]*")
# Azure's older paths name their version in the query.
_UNVERSIONED = "deployments"
_ALLOWED_QUERY = {"api-version"}


def completions_url(base_url: str) -> str:
    """Return the URL to post to: with or without a version, trailing slashes or the path of completions itself.

    `/v1` is added unless the path names a version already. Raises ValueError that says what is wrong with the URL.
    """
    parts = _checked(base_url.strip())
    segments = [segment for segment in parts.path.split("/") if segment]
    path = "/" + "/".join(segments) if segments else ""
    if not path.endswith(_COMPLETIONS):
        path += _COMPLETIONS if _is_versioned(segments) else f"/v1{_COMPLETIONS}"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _is_versioned(segments: list[str]) -> bool:
    return any(_VERSION.fullmatch(segment) or segment == _UNVERSIONED for segment in segments)


def _checked(url: str) -> SplitResult:
    if not url.isascii() or any(character.isspace() for character in url):
        raise ValueError("a URL has no spaces and only ASCII characters")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("use http:// or https:// and a host")
    try:
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        raise ValueError("the port is not a number from 0 to 65535") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("a key or password does not belong in the URL")
    if any(name not in _ALLOWED_QUERY for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise ValueError("only api-version may stand in the query; a key does not belong in the URL")
    return parts
