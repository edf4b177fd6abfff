"""The operations that tell about scorers and the service itself."""

from app.api.openapi import examples
from app.api.openapi.operation import Answer, Operation, example
from app.api.openapi.parts import SCORER_ID_IN_PATH, path_parameter
from app.api.problems import PROBLEM_JSON
from app.domain.errors import ErrorCode

SCORER_OPERATIONS = (
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

SERVICE_OPERATIONS = (
    Operation(
        method="get",
        path="/livez",
        id="getLiveness",
        tag="service",
        summary="Is the process alive",
        description="Touches nothing.",
        answers={200: Answer("It is", {"alive": example("Alive", {"status": "alive"})}, "Liveness")},
    ),
    Operation(
        method="get",
        path="/readyz",
        id="getReadiness",
        tag="service",
        summary="Is everything there that serving needs",
        answers={
            200: Answer("It is", {"ready": example("Ready", examples.READY)}, "Readiness"),
            503: Answer(
                "Something needed is missing",
                {"notReady": example("Redis is away", examples.NOT_READY)},
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
            200: Answer("All metrics", {"text": example("One counter", examples.METRICS)}, media_type="text/plain")
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
                {"text": example("not_found", "not_found (404)\n\nThere is nothing here for this caller.\n")},
                media_type="text/plain",
            )
        },
        problems=("NotFound",),
    ),
)
