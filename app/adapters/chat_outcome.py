"""What became of one HTTP attempt."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from app.domain.errors import AssayError, JudgeUnavailable


class Outcome(StrEnum):
    """The closed set of labels under which attempts are counted."""

    OK = "ok"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    CONNECTION = "connection"
    REJECTED = "rejected"
    INVALID_BODY = "invalid_body"
    CANCELLED = "cancelled"


class CallFailed(Exception):
    """One attempt failed: how it is counted, what it becomes for the caller, and whether another may help.

    `detail` is safe to show: it holds no text, no reply and no key. `is_sign_of_life`: the judge's server works,
    whatever it thinks of this call.
    """

    def __init__(
        self,
        outcome: Outcome,
        detail: str,
        *,
        becomes: type[AssayError] = JudgeUnavailable,
        retry: bool = True,
        retry_after_s: float = 0.0,
        is_sign_of_life: bool = False,
    ) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
        self.becomes = becomes
        self.retry = retry
        self.retry_after_s = retry_after_s
        self.is_sign_of_life = is_sign_of_life or outcome in {Outcome.RATE_LIMITED, Outcome.REJECTED}

    def final(self, addition: str = "") -> AssayError:
        """Return the error for the caller, when there is no further attempt."""
        return self.becomes(self.detail + addition)


_CONTENT_TYPE = re.compile(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,60}", re.IGNORECASE)


class Answer(NamedTuple):
    """An HTTP answer; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        """Status and content type, as they may be shown."""
        content_type = _CONTENT_TYPE.match(self.headers.get("content-type", ""))
        return f"{self.status}, {content_type.group() if content_type else 'no content type'}"


class HeldBack(CallFailed):
    """No attempt was made, since the judge is to be left alone for `retry_after_s` more.

    `cause` is `paused` or `breaker`. Those who wait together are let in over `spread_s` afterwards.
    """

    def __init__(self, cause: str, detail: str, *, wait_s: float, spread_s: float) -> None:
        super().__init__(Outcome.CANCELLED, detail, retry_after_s=wait_s)
        self.cause = cause
        self.spread_s = spread_s
