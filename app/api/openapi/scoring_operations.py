"""The operations that score a text."""

from app.api.openapi import examples
from app.api.openapi.operation import Answer, Operation, example
from app.api.openapi.parts import IDEMPOTENCY_KEY, PREFER, SCORER_ID_IN_PATH, query_parameters
from app.api.queries import RunParameters

BODY = ("MalformedJson", "BodyTooSlow", "ContentTooLarge", "UnsupportedMediaType", "InvalidScoreRequest")
SCORING = (*BODY, "IdempotencyConflict", "NotAccepted")
JUDGING = ("JudgeFailed", "JudgeTooLate")
SCORED_HEADERS = ("Location", "ETag", "Preference-Applied", "Idempotent-Replayed", "Vary")

COMPLETED = example("Ended with a score", examples.COMPLETED_RUN)
QUEUED = example("Waiting in the queue", examples.QUEUED_RUN)
NOT_SAMPLED = Answer("Not sampled: nothing was scored and nothing is kept", headers=("Vary",))

SCORING_OPERATIONS = (
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
                {"runs": example("One completed, one failed", {"runs": [examples.COMPLETED_RUN, examples.FAILED_RUN]})},
                "Runs",
                headers=("Preference-Applied", "Idempotent-Replayed", "Vary"),
            ),
            202: Answer(
                "At least one run goes on in the queue",
                {"runs": example("One still waits", {"runs": [examples.COMPLETED_RUN, examples.QUEUED_RUN]})},
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
