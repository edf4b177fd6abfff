"""Every problem as a shared response, by a name that operations refer to."""

from app.api.openapi.parts import RUN_ID, Json, problem_example, problem_response
from app.domain.errors import ErrorCode

_INVALID = problem_example(
    ErrorCode.INVALID_REQUEST,
    "The request is not valid",
    "The request has faults; see errors",
    errors=[
        {"pointer": "#/options/scale", "code": "greater_than", "detail": "Input should be greater than 0"},
        {"pointer": "#/colour", "code": "extra_forbidden", "detail": "Extra inputs are not permitted"},
    ],
)
_OVERFLOW = problem_example(
    ErrorCode.CONTEXT_OVERFLOW,
    "The text does not fit the judge model's context",
    "Shorten the text or use a judge with a larger context",
    runId=RUN_ID,
)
_CAPACITY = problem_example(
    ErrorCode.CAPACITY_REDUCED,
    "The run store does not answer",
    "The run store does not answer or takes no writes; try again",
)
_UNCONFIGURED = problem_example(
    ErrorCode.NOT_CONFIGURED,
    "The judge is not configured",
    "No judge model is configured: set ASSAY_JUDGE_MODEL or ASSAY_MODELS_FILE",
    status=503,
)
_UNUSABLE = problem_example(
    ErrorCode.NOT_CONFIGURED,
    "The scorer can't be used here",
    "The definition of this scorer is not valid in this version of Assay; register a corrected one",
    status=503,
)
_JUDGE_FAILURES = (
    problem_example(
        ErrorCode.JUDGE_UNAVAILABLE,
        "The judge model is not available",
        "The judge answered 503 to every attempt",
        runId=RUN_ID,
    ),
    problem_example(
        ErrorCode.JUDGE_OUTPUT_INVALID,
        "The judge model's reply was not what was asked",
        "Verdicts are missing after the re-asks",
        runId=RUN_ID,
    ),
    problem_example(
        ErrorCode.JUDGE_REFUSED,
        "The judge model refused to judge this text",
        "Use another judge model for this text",
        runId=RUN_ID,
    ),
    problem_example(
        ErrorCode.NOT_CONFIGURED, "The judge is not configured", "The provider refused the key", runId=RUN_ID
    ),
)
_TOO_LATE = (
    problem_example(
        ErrorCode.JUDGE_TIMEOUT,
        "The judge model did not answer in time",
        "Retry the run or give it more time",
        runId=RUN_ID,
    ),
    problem_example(
        ErrorCode.RUN_EXPIRED,
        "The run's deadline passed",
        "Send a longer timeoutMs, or retry the run",
        runId=RUN_ID,
    ),
)

# By name: the status it has and the response.
PROBLEM_RESPONSES: dict[str, tuple[int, Json]] = {
    "MalformedJson": (
        400,
        problem_response(
            "The body is not JSON",
            [
                problem_example(
                    ErrorCode.MALFORMED_JSON,
                    "The body is not JSON",
                    "Send one JSON document in UTF-8: expected value at line 1 column 1",
                )
            ],
        ),
    ),
    "Forbidden": (
        403,
        problem_response(
            "This caller may not do it",
            [
                problem_example(
                    ErrorCode.FORBIDDEN,
                    "Not allowed",
                    "This scorer belongs to the installation; only scorers that were registered can be deleted",
                )
            ],
        ),
    ),
    "NotFound": (
        404,
        problem_response(
            "There is nothing here for this caller",
            [
                problem_example(
                    ErrorCode.NOT_FOUND, "Not found", "There is no run with this id, or it is no longer kept"
                )
            ],
        ),
    ),
    "MethodNotAllowed": (
        405,
        problem_response(
            "The path exists, the method does not",
            [problem_example(ErrorCode.METHOD_NOT_ALLOWED, "Method not allowed", "This path takes GET, HEAD, POST")],
            ["Allow"],
        ),
    ),
    "BodyTooSlow": (
        408,
        problem_response(
            "The body did not arrive in time",
            [
                problem_example(
                    ErrorCode.INVALID_REQUEST,
                    "The body did not arrive in time",
                    "Send the whole body within 30 seconds",
                    status=408,
                )
            ],
        ),
    ),
    "IdempotencyConflict": (
        409,
        problem_response(
            "The key or runId belongs to another body",
            [
                problem_example(
                    ErrorCode.IDEMPOTENCY_CONFLICT,
                    "The key or runId belongs to another request",
                    "This Idempotency-Key was used with another body; use a new key",
                )
            ],
        ),
    ),
    "RunConflict": (
        409,
        problem_response(
            "The run's state does not allow this",
            [
                problem_example(
                    ErrorCode.INVALID_REQUEST,
                    "The run's state does not allow this",
                    "Only a failed, expired or cancelled run can be run again",
                    status=409,
                )
            ],
        ),
    ),
    "ScorerConflict": (
        409,
        problem_response(
            "The version belongs to another definition, or no more scorers are kept",
            [
                problem_example(
                    ErrorCode.IDEMPOTENCY_CONFLICT,
                    "The version belongs to another definition",
                    "This version was registered with another body; register yours as a new version",
                ),
                problem_example(
                    ErrorCode.INVALID_REQUEST,
                    "No more scorers can be registered",
                    "100 scorers are registered, and no more are kept; delete one",
                    status=409,
                ),
            ],
        ),
    ),
    "ContentTooLarge": (
        413,
        problem_response(
            "The body is too large",
            [problem_example(ErrorCode.CONTENT_TOO_LARGE, "The body is too large", "Send at most 4194304 bytes")],
        ),
    ),
    "UnsupportedMediaType": (
        415,
        problem_response(
            "The body is not labelled as JSON",
            [
                problem_example(
                    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
                    "The media type is not supported",
                    "Send Content-Type: application/json",
                )
            ],
        ),
    ),
    "InvalidRequest": (422, problem_response("The request has faults", [_INVALID])),
    "InvalidScoreRequest": (
        422,
        problem_response("The request has faults, or its text does not fit the judge", [_INVALID, _OVERFLOW]),
    ),
    "Internal": (
        500,
        problem_response(
            "A bug; nothing of it is told",
            [
                problem_example(
                    ErrorCode.INTERNAL,
                    "Internal error",
                    "Something went wrong here; the traceId finds it in the server's log",
                )
            ],
        ),
    ),
    "JudgeFailed": (
        502,
        problem_response("The judge gave no usable answer; the run is kept", _JUDGE_FAILURES, ["Location"]),
    ),
    "Unavailable": (503, problem_response("The run store does not answer", [_CAPACITY], ["Retry-After"])),
    "ScorerUnusable": (
        503,
        problem_response("It can't be told now", [_CAPACITY, _UNUSABLE], ["Retry-After"]),
    ),
    "NotAccepted": (
        503,
        problem_response("Nothing was accepted; try again later", [_CAPACITY, _UNCONFIGURED], ["Retry-After"]),
    ),
    "JudgeTooLate": (504, problem_response("The judge was too slow; the run is kept", _TOO_LATE, ["Location"])),
}
