"""The OpenAPI document, put together from the operations and the models."""

import json
from collections.abc import Iterable
from typing import Any

from app import __version__
from app.api.openapi import examples
from app.api.openapi.operation import Answer, Operation, example
from app.api.openapi.operations import OPERATIONS
from app.api.openapi.parts import HEADERS, header_ref
from app.api.openapi.problem_responses import PROBLEM_RESPONSES
from app.api.openapi.schemas import component_schemas, schema_ref
from app.api.scorers import describe
from app.custom.definition import ScorerDefinition
from app.runs.catalog import Offer, Origin, checked, tried
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


def _live_examples(scorers: dict[str, AnyScorer]) -> dict[str, dict[int, Json]]:
    """Return the examples that show this server's own scorers and what becomes of a definition, by operation."""
    described = [_described(Offer(scorer, Origin.BUILTIN)) for scorer in scorers.values()]
    listed = [{name: value for name, value in one.items() if name != "definition"} for one in described]
    definition = ScorerDefinition.model_validate_json(json.dumps(examples.DEFINITION), strict=True)
    registered = example("The scorer", _described(Offer(checked(definition), Origin.CUSTOM, definition.text)))
    shown = example("What the example shows", tried(definition).model_dump(mode="json"))
    return {
        "listScorers": {200: {"scorers": example("All scorers", {"items": listed, "nextCursor": None})}},
        "getScorer": {200: {"scorer": example("One scorer", described[0])}},
        "createScorer": {200: {"again": registered, "dryRun": shown}, 201: {"registered": registered}},
    }


def _described(offer: Offer) -> Json:
    return describe(offer).model_dump(mode="json")


def _paths(live: dict[str, dict[int, Json]]) -> Json:
    paths: Json = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, live.get(operation.id, {}))
    return paths


def _operation(operation: Operation, live: dict[int, Json]) -> Json:
    responses = {
        str(status): _answer(answer, answer.examples or live.get(status, {}))
        for status, answer in operation.answers.items()
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
