"""The operations of the API, one entry each: what goes in, what comes out, and what can go wrong."""

from dataclasses import dataclass, field
from typing import Any

from app.api.answers import JSON
from app.api.events import EVENT_STREAM
from app.api.openapi import examples
from app.api.openapi.parts import (
    IDEMPOTENCY_KEY,
    IF_NONE_MATCH,
    LAST_EVENT_ID,
    PREFER,
    RUN_ID_IN_PATH,
    SCORER_ID_IN_PATH,
    path_parameter,
    query_parameters,
)
from app.api.problems import PROBLEM_JSON
from app.api.queries import EventParameters, ListParameters, RunParameters, WaitParameters
from app.domain.errors import ErrorCode

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that is no shared problem; `schema` names a component, or is None for text without one."""

    description: str
    examples: Json = field(default_factory=dict)
    schema: str | None = None
    media_type: str = JSON
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    id: str
    tag: str
    summary: str
    answers: dict[int, Answer]
    description: str = ""
    parameters: tuple[Json, ...] = ()
    body: str | None = None
    body_examples: Json = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def _example(summary: str, value: Any) -> Json:
    return {"summary": summary, "value": value}


READING = ("NotFound", "InvalidRequest", "Unavailable")
BODY = ("MalformedJson", "BodyTooSlow", "ContentTooLarge", "UnsupportedMediaType", "InvalidScoreRequest")
SCORING = (*BODY, "IdempotencyConflict", "NotAccepted")
JUDGING = ("JudgeFailed", "JudgeTooLate")
RUN_HEADERS = ("ETag", "Retry-After")
SCORED_HEADERS = ("Location", "ETag", "Preference-Applied", "Idempotent-Replayed", "Vary")

COMPLETED = _example("Ended with a score", examples.COMPLETED_RUN)
QUEUED = _example("Waiting in the queue", examples.QUEUED_RUN)
NOT_SAMPLED = Answer("Not sampled: nothing was scored and nothing is kept", headers=("Vary",))

SCORE = (
    Operation(
        method="post",
        path="/v1/scorers/{scorerId}/runs",
        id="createRun",
        tag="scoring",
        summary="Score one text with one scorer",
        description="Inline (the default) answers with the finished run. Queued answers 202; then GET the run, wait "
        "for it with `?wait=`, or stream its events. An inline run that outlives its wait goes on in the queue. When "
        "the judge fails inline the answer is a problem that names the run, which is kept as `failed`.",
        parameters=(SCORER_ID_IN_PATH, PREFER, IDEMPOTENCY_KEY, *query_parameters(RunParameters)),
        body="ScoreRequest",
        body_examples=examples.SCORE_REQUESTS,
        answers={
            200: Answer("The run has ended", {"completed": COMPLETED}, "Run", headers=SCORED_HEADERS),
            202: Answer(
                "The run goes on in the queue", {"queued": QUEUED}, "Run", headers=(*SCORED_HEADERS, "Retry-After")
            ),
            204: NOT_SAMPLED,
        },
        problems=("NotFound", *SCORING, *JUDGING),
    ),
    Operation(
        method="post",
        path="/v1/runs",
        id="createRuns",
        tag="scoring",
        summary="Score one text with several scorers",
        description="Answers 200 when all runs have ended, whatever became of each: every run tells its own status "
        "and error. `options` and `threshold` hold for all scorers that do not bring their own. With `runId` the runs "
        "are called runId-scorerId.",
        parameters=(PREFER, IDEMPOTENCY_KEY, *query_parameters(RunParameters)),
        body="MultiScoreRequest",
        body_examples=examples.MULTI_REQUESTS,
        answers={
            200: Answer(
                "All runs have ended",
                {
                    "runs": _example(
                        "One completed, one failed", {"runs": [examples.COMPLETED_RUN, examples.FAILED_RUN]}
                    )
                },
                "Runs",
                headers=("Preference-Applied", "Idempotent-Replayed", "Vary"),
            ),
            202: Answer(
                "At least one run goes on in the queue",
                {"runs": _example("One still waits", {"runs": [examples.COMPLETED_RUN, examples.QUEUED_RUN]})},
                "Runs",
                headers=("Preference-Applied", "Idempotent-Replayed", "Vary", "Retry-After"),
            ),
            204: NOT_SAMPLED,
        },
        problems=SCORING,
    ),
    Operation(
        method="post",
        path="/v1/metrics/{scorerId}/measure",
        id="measure",
        tag="scoring",
        summary="Score one text in the older metric shape",
        description="Always inline. `output` is the text that is scored, `input` what it answers.",
        parameters=(SCORER_ID_IN_PATH,),
        body="MeasureRequest",
        body_examples=examples.MEASURE_REQUESTS,
        answers={
            200: Answer("The score and why", examples.MEASURE_RESULTS, "MeasureResult", headers=("Location",)),
        },
        problems=("NotFound", *BODY, "NotAccepted", *JUDGING),
    ),
)

RUNS = (
    Operation(
        method="get",
        path="/v1/runs",
        id="listRuns",
        tag="runs",
        summary="List runs, newest first",
        description="`metadata.KEY=VALUE` filters on metadata, with as many keys as a run may have. Parameters that "
        "are not known are refused, so that a misspelt filter is not taken for none.",
        parameters=tuple(query_parameters(ListParameters)),
        answers={200: Answer("A page of runs", {"page": _example("Two runs", examples.RUN_PAGE)}, "RunPage")},
        problems=("InvalidRequest", "Unavailable"),
    ),
    Operation(
        method="get",
        path="/v1/runs/{runId}",
        id="getRun",
        tag="runs",
        summary="Get a run in any state",
        description="Always 200 while the run is kept. `wait` polls: the answer comes when the run has ended, or as "
        "it stands when the time is over.",
        parameters=(RUN_ID_IN_PATH, IF_NONE_MATCH, *query_parameters(WaitParameters)),
        answers={
            200: Answer(
                "The run as it stands",
                {
                    "completed": COMPLETED,
                    "running": _example("Being executed", examples.RUNNING_RUN),
                    "failed": _example("Ended without a score", examples.FAILED_RUN),
                },
                "Run",
                headers=RUN_HEADERS,
            ),
            304: Answer("The caller has this representation of the run", headers=RUN_HEADERS),
        },
        problems=READING,
    ),
    Operation(
        method="delete",
        path="/v1/runs/{runId}",
        id="deleteRun",
        tag="runs",
        summary="Delete a run and everything that was kept of it",
        parameters=(RUN_ID_IN_PATH,),
        answers={204: Answer("Nothing of the run is kept any more")},
        problems=READING,
    ),
    Operation(
        method="post",
        path="/v1/runs/{runId}/cancel",
        id="cancelRun",
        tag="runs",
        summary="Stop a run that has not ended",
        description="A run that has ended is answered as it is.",
        parameters=(RUN_ID_IN_PATH, *query_parameters(RunParameters)),
        answers={
            200: Answer(
                "The run as it stands now",
                {"cancelled": _example("Cancelled", examples.CANCELLED_RUN)},
                "Run",
                headers=RUN_HEADERS,
            )
        },
        problems=READING,
    ),
    Operation(
        method="post",
        path="/v1/runs/{runId}/retry",
        id="retryRun",
        tag="runs",
        summary="Queue a failed, expired or cancelled run again",
        parameters=(RUN_ID_IN_PATH, *query_parameters(RunParameters)),
        answers={
            202: Answer("The run is queued again", {"queued": QUEUED}, "Run", headers=("Location", *RUN_HEADERS)),
        },
        problems=(*READING, "RunConflict"),
    ),
    Operation(
        method="get",
        path="/v1/runs/{runId}/events",
        id="streamRunEvents",
        tag="runs",
        summary="Stream the steps of a run as they end, then the run",
        description="Server-sent events: `step` for each step, then one `run`, after which the stream ends. Comments "
        "keep the connection alive. A reconnecting client goes on after its Last-Event-ID.",
        parameters=(RUN_ID_IN_PATH, LAST_EVENT_ID, *query_parameters(EventParameters)),
        answers={
            200: Answer(
                "The events",
                {"stream": _example("A step and the end", examples.EVENT_STREAM)},
                media_type=EVENT_STREAM,
            )
        },
        problems=READING,
    ),
)

SCORERS = (
    Operation(
        method="get",
        path="/v1/scorers",
        id="listScorers",
        tag="scorers",
        summary="List the scorers",
        answers={200: Answer("All scorers", schema="ScorerPage")},
        problems=("InvalidRequest",),
    ),
    Operation(
        method="get",
        path="/v1/scorers/{scorerId}",
        id="getScorer",
        tag="scorers",
        summary="Get what a scorer measures, needs and returns",
        parameters=(SCORER_ID_IN_PATH,),
        answers={200: Answer("The scorer", schema="ScorerDescription")},
        problems=("NotFound", "InvalidRequest"),
    ),
)

SERVICE = (
    Operation(
        method="get",
        path="/livez",
        id="getLiveness",
        tag="service",
        summary="Is the process alive",
        description="Touches nothing.",
        answers={200: Answer("It is", {"alive": _example("Alive", {"status": "alive"})}, "Liveness")},
    ),
    Operation(
        method="get",
        path="/readyz",
        id="getReadiness",
        tag="service",
        summary="Is everything there that serving needs",
        answers={
            200: Answer("It is", {"ready": _example("Ready", examples.READY)}, "Readiness"),
            503: Answer(
                "Something needed is missing",
                {"notReady": _example("Redis is away", examples.NOT_READY)},
                "NotReady",
                PROBLEM_JSON,
                ("Retry-After",),
            ),
        },
    ),
    Operation(
        method="get",
        path="/metrics",
        id="getMetrics",
        tag="service",
        summary="Metrics for Prometheus",
        answers={
            200: Answer("All metrics", {"text": _example("One counter", examples.METRICS)}, media_type="text/plain")
        },
    ),
    Operation(
        method="get",
        path="/problems/{code}",
        id="getProblem",
        tag="service",
        summary="Explain a problem code",
        parameters=(
            path_parameter("code", "The `code` of a problem", "not_found", enum=[code.value for code in ErrorCode]),
        ),
        answers={
            200: Answer(
                "What it means and what to do",
                {"text": _example("not_found", "not_found (404)\n\nThere is nothing here for this caller.\n")},
                media_type="text/plain",
            )
        },
        problems=("NotFound",),
    ),
)

OPERATIONS = (*SCORE, *RUNS, *SCORERS, *SERVICE)
