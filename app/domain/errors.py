"""Everything that can go wrong, as a closed tree.

AssayError
├── CallerError                      the request can't be taken
│   ├── InvalidRequest               invalid_request, with one entry per fault
│   ├── NotFound                     not_found
│   ├── Forbidden                    forbidden
│   ├── IdempotencyConflict          idempotency_conflict
│   │   └── VersionConflict          the version of a scorer was registered with another body
│   ├── RunConflict                  invalid_request: the run's state does not allow it (409)
│   ├── ScorerFault                  invalid_request: a custom scorer's definition fails on this text
│   ├── ScorersFull                  invalid_request: no more scorers or versions are kept (409)
│   └── ContextOverflow              context_overflow (found before any judge call)
├── ServiceError                     Assay can't take it now
│   ├── CapacityReduced              capacity_reduced, with retry_after seconds
│   ├── StoreUnavailable             capacity_reduced: the run store is away
│   ├── NotConfigured                not_configured
│   │   └── ScorerUnusable           the scorer is not to be had here, or not any more
│   └── Internal                     internal
├── RunExpired                       run_expired
└── JudgeError                       the judge model failed
    ├── JudgeTimeout                 judge_timeout
    ├── JudgeUnavailable             judge_unavailable
    ├── JudgeRefused                 judge_refused
    └── JudgeOutputInvalid           judge_output_invalid
        ├── EmptyReply               the reply had no text
        ├── TruncatedReply           the reply was cut at its token limit
        ├── UnreadableReply          no JSON document could be read
        └── WrongReply               JSON, but not what the step asked for

Details never repeat a submitted text, a prompt, a reply or a key.
"""

from copy import copy
from enum import StrEnum
from typing import ClassVar, Self

from app.domain.model import Model


class ErrorCode(StrEnum):
    """The closed, published list of problem codes."""

    MALFORMED_JSON = "malformed_json"
    INVALID_REQUEST = "invalid_request"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    CONTENT_TOO_LARGE = "content_too_large"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    QUOTA_EXCEEDED = "quota_exceeded"
    CAPACITY_REDUCED = "capacity_reduced"
    JUDGE_TIMEOUT = "judge_timeout"
    JUDGE_UNAVAILABLE = "judge_unavailable"
    JUDGE_OUTPUT_INVALID = "judge_output_invalid"
    JUDGE_REFUSED = "judge_refused"
    CONTEXT_OVERFLOW = "context_overflow"
    NOT_CONFIGURED = "not_configured"
    RUN_EXPIRED = "run_expired"
    INTERNAL = "internal"


class Fault(Model):
    """One fault of a request: where (a JSON pointer as URI fragment), what kind, and what to do."""

    pointer: str
    code: str
    detail: str


class RunError(Model):
    """Why a run has no score; `reason` names the kind within the code, `step` where it happened."""

    code: ErrorCode
    title: str
    detail: str
    step: str | None = None
    reason: str | None = None


class AssayError(Exception):
    """Root of the tree; `detail` is safe to show to any caller."""

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL
    title: ClassVar[str] = "Something went wrong"
    reason: ClassVar[str | None] = None

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def of(self, model: str) -> Self:
        """Return the same error with the name of the model that it is about."""
        named = copy(self)
        named.detail = f"{model}: {self.detail}"
        return named

    def as_run_error(self, step: str | None = None) -> RunError:
        """Return the form that is kept on a failed run."""
        return RunError(code=self.code, title=self.title, detail=self.detail, step=step, reason=self.reason)


class CallerError(AssayError):
    """The request can't be taken as it is."""


class InvalidRequest(CallerError):
    """One or more faults in the body, the query or a header."""

    code = ErrorCode.INVALID_REQUEST
    title = "The request is not valid"

    def __init__(self, detail: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(detail)
        self.faults = faults


class NotFound(CallerError):
    """There is no such thing for this caller."""

    code = ErrorCode.NOT_FOUND
    title = "Not found"


class Forbidden(CallerError):
    """What was asked is not this caller's to do."""

    code = ErrorCode.FORBIDDEN
    title = "Not allowed"


class IdempotencyConflict(CallerError):
    """The key or runId was used before with another body."""

    code = ErrorCode.IDEMPOTENCY_CONFLICT
    title = "The key or runId belongs to another request"


class VersionConflict(IdempotencyConflict):
    """A version of a scorer never changes its meaning."""

    title = "The version belongs to another definition"


class RunConflict(CallerError):
    """The run's state does not allow what was asked."""

    code = ErrorCode.INVALID_REQUEST
    title = "The run's state does not allow this"


class ScorerFault(CallerError):
    """A custom scorer's formula (`of_formula`) or instructions fail on this text, though they passed when saved."""

    code = ErrorCode.INVALID_REQUEST
    title = "The scorer's definition does not work for this text"
    reason = "definition"

    def __init__(self, detail: str, *, of_formula: bool = False) -> None:
        super().__init__(detail)
        self.of_formula = of_formula


class ScorersFull(CallerError):
    """No more scorers, or versions of one, are kept for this tenant."""

    code = ErrorCode.INVALID_REQUEST
    title = "No more scorers can be registered"


class ContextOverflow(CallerError):
    """The text can't fit the judge model's context, found before any call."""

    code = ErrorCode.CONTEXT_OVERFLOW
    title = "The text does not fit the judge model's context"


class ServiceError(AssayError):
    """Assay can't serve this now."""


class CapacityReduced(ServiceError):
    """Full or shutting down: try again after `retry_after` seconds."""

    code = ErrorCode.CAPACITY_REDUCED
    title = "Too much to do at the moment"

    def __init__(self, detail: str, retry_after: int = 5) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class StoreUnavailable(CapacityReduced):
    """The Redis that keeps the runs does not answer."""

    title = "The run store does not answer"

    def __init__(
        self, detail: str = "The run store does not answer or takes no writes; try again", retry_after: int = 2
    ) -> None:
        super().__init__(detail, retry_after)


class NotConfigured(ServiceError):
    """A setting is missing or refused by the provider; the detail says which."""

    code = ErrorCode.NOT_CONFIGURED
    title = "The judge is not configured"


class ScorerUnusable(NotConfigured):
    """A scorer was taken away from this installation, or its definition is not valid in this version."""

    title = "The scorer can't be used here"


class Internal(ServiceError):
    """A bug: the log has the story, under the trace id."""

    code = ErrorCode.INTERNAL
    title = "Internal error"


class RunExpired(AssayError):
    """The run's deadline passed."""

    code = ErrorCode.RUN_EXPIRED
    title = "The run's deadline passed"


class JudgeError(AssayError):
    """The judge model gave no usable answer.

    `own_deadline` when it was this run's deadline that left no time: a run with more time may still get an answer.
    """

    def __init__(self, detail: str, *, own_deadline: bool = False) -> None:
        super().__init__(detail)
        self.own_deadline = own_deadline


class JudgeTimeout(JudgeError):
    """No answer in time."""

    code = ErrorCode.JUDGE_TIMEOUT
    title = "The judge model did not answer in time"


class JudgeUnavailable(JudgeError):
    """Connection refused, 5xx, or 429 beyond the retries."""

    code = ErrorCode.JUDGE_UNAVAILABLE
    title = "The judge model is not available"


class JudgeRefused(JudgeError):
    """The model declined to judge this text."""

    code = ErrorCode.JUDGE_REFUSED
    title = "The judge model refused to judge this text"


class JudgeOutputInvalid(JudgeError):
    """The reply could not be used, re-asks included."""

    code = ErrorCode.JUDGE_OUTPUT_INVALID
    title = "The judge model's reply could not be used"


class EmptyReply(JudgeOutputInvalid):
    """The reply had no text."""

    title = "The judge model's reply was empty"
    reason = "empty"


class TruncatedReply(JudgeOutputInvalid):
    """The reply was cut at its token limit, the larger budget included."""

    title = "The judge model's reply was cut short"
    reason = "truncated"


class UnreadableReply(JudgeOutputInvalid):
    """No JSON document could be read from the reply."""

    title = "The judge model's reply was not readable"
    reason = "unreadable"


class WrongReply(JudgeOutputInvalid):
    """The reply was JSON, but not what the step asked for (labels, numbers or counts)."""

    title = "The judge model's reply was not what was asked"
    reason = "wrong"
