"""The operations that tell about scorers and the service itself."""

from app.api.openapi import examples
from app.api.openapi.operation import Answer, Operation, example
from app.api.openapi.parts import SCORER_ID_IN_PATH, path_parameter, query_parameters
from app.api.problems import PROBLEM_JSON
from app.api.scorers import RegistrationParameters
from app.domain.errors import ErrorCode

SCORER_OPERATIONS = (
    Operation(
        method="get",
        path="/v1/scorers",
        id="listScorers",
        tag="scorers",
        summary="List the scorers",
        description="Those of this server, and those that the caller registered.",
        answers={200: Answer("All scorers", schema="ScorerPage")},
        problems=("InvalidRequest", "Unavailable"),
    ),
    Operation(
        method="post",
        path="/v1/scorers",
        id="createScorer",
        tag="scorers",
        summary="Register a scorer of your own",
        description="The definition is checked and tried on its example; no judge is asked. The same body again "
        "answers 200. A version never changes its meaning: another body is a new version, which runs use from then on. "
        "Runs that were accepted before keep theirs. Up to 100 scorers are kept, and 1,000 versions of each. With "
        "`dryRun` nothing is registered, and the answer shows what a run over the example would.",
        parameters=tuple(query_parameters(RegistrationParameters)),
        body="ScorerDefinition",
        body_examples=examples.DEFINITIONS,
        answers={
            200: Answer(
                "It was registered before; with `dryRun`, what the example shows", schema="ScorerDescriptionOrDryRun"
            ),
            201: Answer("It is registered", schema="ScorerDescription", headers=("Location",)),
        },
        problems=(
            "MalformedJson",
            "BodyTooSlow",
            "ContentTooLarge",
            "UnsupportedMediaType",
            "InvalidRequest",
            "ScorerConflict",
            "Unavailable",
        ),
    ),
    Operation(
        method="get",
        path="/v1/scorers/{scorerId}",
        id="getScorer",
        tag="scorers",
        summary="Get what a scorer measures, needs and returns",
        parameters=(SCORER_ID_IN_PATH,),
        answers={200: Answer("The scorer", schema="ScorerDescription")},
        problems=("NotFound", "InvalidRequest", "ScorerUnusable"),
    ),
    Operation(
        method="delete",
        path="/v1/scorers/{scorerId}",
        id="deleteScorer",
        tag="scorers",
        summary="Delete a scorer of your own",
        description="All its versions go. Runs that were accepted before still end, and can be retried.",
        parameters=(SCORER_ID_IN_PATH,),
        answers={204: Answer("It is gone")},
        problems=("Forbidden", "NotFound", "InvalidRequest", "Unavailable"),
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
