"""What each problem code means and what to do about it, as `/problems/{code}` and the OpenAPI document say it."""

from collections.abc import Mapping
from typing import Final

from app.domain.errors import ErrorCode

EXPLANATIONS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.MALFORMED_JSON: "The body is not one JSON document in UTF-8. Send JSON; the detail names the place.",
    ErrorCode.INVALID_REQUEST: "Something in the body, the query string or a header is not valid. `errors` points "
    "at every fault. With 409 the run's state, or the number of scorers, does not allow what was asked.",
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: "Bodies are JSON: send Content-Type: application/json and no Content-Encoding.",
    ErrorCode.CONTENT_TOO_LARGE: "The body is larger than this server takes. Send less text at once.",
    ErrorCode.UNAUTHORIZED: "The request needs a key. Send Authorization: Bearer KEY.",
    ErrorCode.FORBIDDEN: "The key does not allow this, or the scorer belongs to the installation.",
    ErrorCode.NOT_FOUND: "There is nothing here for this caller: a wrong id, or a run that is no longer kept.",
    ErrorCode.METHOD_NOT_ALLOWED: "The path exists, the method does not. The header Allow lists what does.",
    ErrorCode.IDEMPOTENCY_CONFLICT: "The Idempotency-Key, the runId or the scorer's version belongs to another body. "
    "Choose a new one.",
    ErrorCode.QUOTA_EXCEEDED: "The quota is spent. Wait as long as Retry-After says.",
    ErrorCode.CAPACITY_REDUCED: "The queue is full, the run store is away or the server is stopping; nothing was "
    "kept. Try again after Retry-After.",
    ErrorCode.JUDGE_TIMEOUT: "The judge model did not answer in time. The run at Location says how far it got; "
    "retry it, or score with a longer timeoutMs.",
    ErrorCode.JUDGE_UNAVAILABLE: "The judge model could not be reached or kept refusing calls. Retry the run later.",
    ErrorCode.JUDGE_OUTPUT_INVALID: "The judge model's replies could not be used, re-asks included. Retry the run or "
    "use a stronger model; no number was made up.",
    ErrorCode.JUDGE_REFUSED: "The judge model declined to judge this text. Use another model.",
    ErrorCode.CONTEXT_OVERFLOW: "The text does not fit the judge model's context. Shorten it or use a larger model.",
    ErrorCode.NOT_CONFIGURED: "No judge model is configured, its provider refused the key or the model (502 on a "
    "run), or the scorer can't be used here any more. The detail says what to set.",
    ErrorCode.RUN_EXPIRED: "The run's deadline passed before it ended. Retry it, or send a longer timeoutMs.",
    ErrorCode.INTERNAL: "A bug in Assay. The server's log has it under the traceId.",
}
