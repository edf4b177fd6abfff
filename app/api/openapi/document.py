"""The OpenAPI document, put together from the operations and the models."""

from collections.abc import Iterable
from typing import Any

from app import __version__
from app.api.openapi.operation import Answer, Operation
from app.api.openapi.operations import OPERATIONS
from app.api.openapi.parts import HEADERS, header_ref
from app.api.openapi.problem_responses import PROBLEM_RESPONSES
from app.api.openapi.schemas import component_schemas, schema_ref
from app.api.scorers import describe
from app.runs.catalog import Offer, Origin
from app.scorers import AnyScorer

Json = dict[str, Any]

EVERYWHERE = ("MethodNotAllowed", "Internal")
DESCRIPTION = """Scores for texts that language models wrote, made by a judge model and open to audit.

Errors are `application/problem+json` (RFC 9457) with a `code` of a closed list and a `traceId`, which every response
also carries as `X-Trace-Id`; a W3C `traceparent` of the caller is taken over. Changes within /v1 only add: ignore
fields and values you do not know."""
TAGS = (
    {"name": "scoring", "description": "Send a text, get a run"},
    {"name": "runs", "description": "Look at runs, wait for them, stop and delete them"},
    {"name": "scorers", "description": "What can be measured"},
    {"name": "service", "description": "Health and metrics"},
)


def build_document(scorers: dict[str, AnyScorer]) -> Json:
    """Return the document; equal code gives equal documents."""
    live = _live_examples(scorers)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Assay", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": list(TAGS),
        "paths": _paths(live),
        "components": {
            "schemas": component_schemas(scorers),
            "responses": {name: response for name, (_, response) in PROBLEM_RESPONSES.items()},
            "headers": HEADERS,
        },
    }


def _live_examples(scorers: dict[str, AnyScorer]) -> dict[str, Json]:
    """Return the examples that show this server's own scorers, by operation."""
    described = [describe(Offer(scorer, Origin.BUILTIN)).model_dump(mode="json") for scorer in scorers.values()]
    listed = [{name: value for name, value in one.items() if name != "definition"} for one in described]
    return {
        "listScorers": {"scorers": {"summary": "All scorers", "value": {"items": listed, "nextCursor": None}}},
        "getScorer": {"scorer": {"summary": "One scorer", "value": described[0]}},
    }


def _paths(live: dict[str, Json]) -> Json:
    paths: Json = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, live.get(operation.id, {}))
    return paths


def _operation(operation: Operation, live: Json) -> Json:
    responses = {
        str(status): _answer(answer, answer.examples or live) for status, answer in operation.answers.items()
    } | _problems((*operation.problems, *EVERYWHERE))
    described: Json = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": dict(sorted(responses.items())),
    }
    if operation.description:
        described["description"] = operation.description
    if operation.parameters:
        described["parameters"] = list(operation.parameters)
    if operation.body:
        content = {"schema": schema_ref(operation.body), "examples": operation.body_examples}
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    return described


def _answer(answer: Answer, examples: Json) -> Json:
    described: Json = {"description": answer.description}
    if examples:
        schema = schema_ref(answer.schema) if answer.schema else {"type": "string"}
        described["content"] = {answer.media_type: {"schema": schema, "examples": examples}}
    if answer.headers:
        described["headers"] = {name: header_ref(name) for name in answer.headers}
    return described


def _problems(names: Iterable[str]) -> Json:
    return {str(PROBLEM_RESPONSES[name][0]): {"$ref": f"#/components/responses/{name}"} for name in names}
