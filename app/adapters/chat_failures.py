"""What an answer other than 200 means, and what to do about it."""

from app.adapters.chat_complaint import Complaint
from app.adapters.chat_outcome import Answer, CallFailed, Outcome
from app.domain.errors import AssayError, ContextOverflow, NotConfigured

_OVERFLOW = (
    "context length",
    "context_length",
    "context size",
    "context_size",
    "context window",
    "context_window",
    "context limit",
    "maximum context",
    "maximum prompt length",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "input token count",
    "reduce the length",
    "string_above_max_length",
)
_FILTERED = (
    "content_filter",
    "content_policy",
    "content management policy",
    "responsibleaipolicyviolation",
    "content exists risk",
    "data_inspection_failed",
    "violates usage guidelines",
    "input was flagged",
)
_NO_CREDIT = (
    "insufficient_quota",
    "insufficient balance",
    "billing_hard_limit",
    "billing_not_active",
    "credit balance is too low",
)
# Some providers answer a wrong key with 400.
_WRONG_KEY = ("api key not valid", "api_key_invalid", "incorrect api key", "invalid api key", "invalid_api_key")
_PASSING = {408, 409, 425}
_UNIMPLEMENTED = 501


def refused_by_filter(answer: Answer, complaint: Complaint) -> bool:
    """Return whether the provider's own filter declined the prompt: a refusal, not an error."""
    return answer.status >= 400 and complaint.mentions(*_FILTERED)


def failure(answer: Answer, complaint: Complaint, *, key_name: str, retry_after_s: float | None) -> CallFailed:
    """Return what this answer means; `key_name` is the variable that holds, or would hold, the key."""
    status = answer.status
    if status == 402 or complaint.mentions(*_NO_CREDIT):
        return _final(f"The judge model's account has no credit left ({status}): top it up or change {key_name}")
    if status == 429:
        detail = "The judge model's provider limits the rate of calls (429)"
        return CallFailed(Outcome.RATE_LIMITED, detail, retry_after_s=retry_after_s or 0.0)
    if status == 413 or complaint.mentions(*_OVERFLOW):
        detail = "The judge model's provider says that the text is too long for it: shorten it or use another model"
        return _final(detail, ContextOverflow)
    if status >= 500 or status in _PASSING:
        detail = f"The judge model's server failed ({answer.kind})"
        return CallFailed(
            Outcome.SERVER_ERROR,
            detail,
            retry=status != _UNIMPLEMENTED,
            retry_after_s=retry_after_s or 0.0,
            is_sign_of_life=status < 500 or status == _UNIMPLEMENTED,
        )
    return _rejected(status, complaint, key_name) if status >= 300 else no_completion(answer)


def _rejected(status: int, complaint: Complaint, key_name: str) -> CallFailed:
    if status < 400:
        return _final(f"The judge model's base URL redirects ({status}): set it to where it leads")
    if status == 401 or complaint.mentions(*_WRONG_KEY):
        return _final(f"The judge model's provider does not take the key ({status}): set {key_name} to a valid one")
    if status == 403:
        return _final(f"The judge model's provider denies access (403): check {key_name} and the models it may use")
    if status in {404, 405}:
        return _final(f"The judge model was not found ({status}): check its name and its base URL")
    return _final(f"The judge model's provider refused the request ({status}): check the model's name and parameters")


def _final(detail: str, becomes: type[AssayError] = NotConfigured) -> CallFailed:
    return CallFailed(Outcome.REJECTED, detail, becomes=becomes, retry=False)


def no_completion(answer: Answer) -> CallFailed:
    """Return the failure of a success status whose body is something else: HTML, an error object, cut JSON."""
    return CallFailed(Outcome.INVALID_BODY, f"The judge model's server gave no chat completion ({answer.kind})")
