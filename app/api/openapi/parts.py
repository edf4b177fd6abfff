"""Pieces that many operations share: parameters, headers and the responses of problems."""

from collections.abc import Iterable
from typing import Any

from app.api.explanations import EXPLANATIONS
from app.api.problems import PROBLEM_JSON, STATUS
from app.domain.errors import ErrorCode
from app.domain.model import Model
from app.domain.request import RUN_ID_PATTERN

Json = dict[str, Any]

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
RUN_ID = "01936d5c-6f00-7cc2-9b1e-2f6f3f0c9a11"


def header_ref(name: str) -> Json:
    """Return a reference to a shared response header."""
    return {"$ref": f"#/components/headers/{name}"}


def _text_header(description: str, example: str, **schema: Any) -> Json:
    return {"description": description, "schema": {"type": "string", **schema}, "example": example}


HEADERS: dict[str, Json] = {
    "Location": _text_header("Where the run is", f"/v1/runs/{RUN_ID}"),
    "Retry-After": {
        "description": "Seconds after which it is worth asking again",
        "schema": {"type": "integer", "minimum": 0},
        "example": 1,
    },
    "ETag": _text_header("Changes with every change of the run; each representation has its own", '"9f2c41d07b"'),
    "Preference-Applied": _text_header("What of `Prefer` was done, the wait as it was capped", "respond-async, wait=5"),
    "Idempotent-Replayed": _text_header("Present when an earlier request had made this run", "true", enum=["true"]),
    "Vary": _text_header("The answer depends on this request header", "Prefer"),
    "Allow": _text_header("The methods of this path", "GET, HEAD, POST"),
}


def path_parameter(name: str, description: str, example: str, **schema: Any) -> Json:
    """Return a path parameter."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", **schema},
        "example": example,
    }


def header_parameter(name: str, description: str, example: str, **schema: Any) -> Json:
    """Return an optional request header."""
    return {
        "name": name,
        "in": "header",
        "description": description,
        "schema": {"type": "string", **schema},
        "example": example,
    }


RUN_ID_IN_PATH = path_parameter("runId", "Id of the run", RUN_ID, pattern=RUN_ID_PATTERN)
SCORER_ID_IN_PATH = path_parameter("scorerId", "Id of the scorer, as GET /v1/scorers lists them", "bias", maxLength=64)
PREFER = header_parameter(
    "Prefer",
    "`respond-async`: answer 202 at once and run in the queue. `wait=N`: wait up to N seconds, then 202; capped at "
    "the server's longest inline wait (60 seconds unless set otherwise). Both: queue, and answer 200 if the run ends "
    "in time. Anything else is ignored (RFC 7240).",
    "respond-async",
)
IDEMPOTENCY_KEY = header_parameter(
    "Idempotency-Key",
    "The same key with the same body gives the same run and no second judge call; with another body 409. Quoted or "
    "bare, 1 to 255 printable characters.",
    '"8e03978e-40d5-43e8-bc93-6894a57f9324"',
    minLength=1,
    maxLength=257,
    pattern=r'^([!#-~][!-~]{0,254}|"[ !#-\[\]-~]{1,255}")$',
)
IF_NONE_MATCH = header_parameter("If-None-Match", "Answer 304 when the run still has this ETag", '"9f2c41d07b"')
LAST_EVENT_ID = header_parameter(
    "Last-Event-ID", "Go on after this event", "1769860801000-0", maxLength=64, pattern="^[0-9-]*$"
)


def query_parameters(model: type[Model]) -> list[Json]:
    """Return the query parameters that a model reads; dictionaries have no fixed names and are left to the text."""
    schema = model.model_json_schema()
    parameters = []
    for name, field in schema["properties"].items():
        described = _without_null(field, schema.get("$defs", {}))
        if described.get("type") == "object":
            continue
        parameter: Json = {"name": name, "in": "query", "schema": described}
        if "description" in field:
            parameter["description"] = field["description"]
        parameters.append(parameter)
    return parameters


def _without_null(field: Json, definitions: Json) -> Json:
    """Return the schema of a parameter that may be absent but never null."""
    chosen = next((branch for branch in field.get("anyOf", ()) if branch.get("type") != "null"), field)
    if "$ref" in chosen:
        chosen = definitions[chosen["$ref"].rsplit("/", 1)[1]]
    merged = {**field, **chosen}
    return {
        key: value
        for key, value in merged.items()
        if key not in ("anyOf", "title", "description") and not (key == "default" and value is None)
    }


def problem_example(code: ErrorCode, title: str, detail: str, *, status: int | None = None, **extra: Any) -> Json:
    """Return one problem as it looks on the wire."""
    return {
        "type": f"/problems/{code}",
        "title": title,
        "status": status or STATUS[code],
        "code": code.value,
        "detail": detail,
        "traceId": TRACE_ID,
        **extra,
    }


def problem_response(description: str, examples: Iterable[Json], headers: Iterable[str] = ()) -> Json:
    """Return a response that is a problem, one example per code."""
    response: Json = {
        "description": description,
        "content": {
            PROBLEM_JSON: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": {
                    example["code"]: {"summary": EXPLANATIONS[ErrorCode(example["code"])], "value": example}
                    for example in examples
                },
            }
        },
    }
    named = {name: header_ref(name) for name in headers}
    if named:
        response["headers"] = named
    return response
