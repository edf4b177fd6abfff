"""The operations on runs that exist."""

from app.api.events import EVENT_STREAM
from app.api.openapi import examples
from app.api.openapi.operation import Answer, Operation, example
from app.api.openapi.parts import IF_NONE_MATCH, LAST_EVENT_ID, RUN_ID_IN_PATH, query_parameters
from app.api.queries import EventParameters, ListParameters, RunParameters, WaitParameters

READING = ("NotFound", "InvalidRequest", "Unavailable")
RUN_HEADERS = ("ETag", "Retry-After")
COMPLETED = example("Ended with a score", examples.COMPLETED_RUN)
QUEUED = example("Waiting in the queue", examples.QUEUED_RUN)

RUN_OPERATIONS = (
    Operation(
        method="get",
        path="/v1/runs",
        id="listRuns",
        tag="runs",
        summary="List runs, newest first",
        description="`metadata.KEY=VALUE` filters on metadata, with as many keys as a run may have. Parameters that "
        "are not known are refused, so that a misspelt filter is not taken for none.",
        parameters=tuple(query_parameters(ListParameters)),
        answers={200: Answer("A page of runs", {"page": example("Two runs", examples.RUN_PAGE)}, "RunPage")},
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
                    "running": example("Being executed", examples.RUNNING_RUN),
                    "failed": example("Ended without a score", examples.FAILED_RUN),
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
                {"cancelled": example("Cancelled", examples.CANCELLED_RUN)},
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
        description="Server-sent events: `step` for each step as it ends (name and run as it stands), then one "
        "`run` with the run, after which the stream ends. Comments keep the connection alive. A reconnecting client "
        "goes on after its Last-Event-ID.",
        parameters=(RUN_ID_IN_PATH, LAST_EVENT_ID, *query_parameters(EventParameters)),
        answers={
            200: Answer(
                "The events",
                {"stream": example("A step and the end", examples.EVENT_STREAM)},
                media_type=EVENT_STREAM,
            )
        },
        problems=READING,
    ),
)
