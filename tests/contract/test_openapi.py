"""The committed document says what the code does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import validate
from pydantic.alias_generators import to_camel

from app.api.app import build_app
from app.api.openapi import document, document_json
from app.api.openapi.examples import COMPLETED_RUN, TEXT
from app.api.routing import Resource
from app.scorers import load_scorers

COMMITTED = Path(__file__).parents[2] / "openapi" / "openapi.json"
UNDOCUMENTED = {"/", "/docs", "/openapi.json"}

Json = dict[str, Any]


def operations() -> Iterator[tuple[str, str, Json]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


OPERATIONS = [pytest.param(operation, id=operation["operationId"]) for _, _, operation in operations()]


def resolved(part: Json) -> Json:
    if "$ref" not in part:
        return part
    found: Any = document()
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return dict(found)


def test_the_committed_document_is_the_generated_one() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == document_json(), (
        "run: python -m app.api.openapi > openapi/openapi.json"
    )


def test_it_is_valid_openapi_3_1() -> None:
    assert document()["openapi"].startswith("3.1")
    validate(document())


def test_every_route_is_described_and_nothing_else() -> None:
    app = build_app(lifespan=None, request_finished=lambda *_: None, exposition=lambda _: (b"", ""), docs=True)  # type: ignore[arg-type]
    served = set()
    for route in app.routes:
        endpoint = route.endpoint  # type: ignore[attr-defined]
        assert isinstance(endpoint, Resource)
        if endpoint.path in UNDOCUMENTED:
            continue
        path = endpoint.path.replace("_id}", "Id}")
        served |= {
            (path, method.lower(), to_camel(handler.__name__))
            for method, handler in endpoint.handlers.items()
            if method != "HEAD"
        }
    assert served == {(path, method, operation["operationId"]) for path, method, operation in operations()}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_body_and_every_answer_has_examples_that_are_valid(operation: Json) -> None:
    contents = []
    if "requestBody" in operation:
        contents.append(operation["requestBody"]["content"])
    for status, response in operation["responses"].items():
        content = resolved(response).get("content", {})
        assert content or status in ("204", "304"), status
        contents.append(content)
    for content in contents:
        for media in content.values():
            assert media["examples"]
            schema = {**media["schema"], "components": document()["components"]}
            for example in media["examples"].values():
                jsonschema.validate(example["value"], schema, cls=jsonschema.Draft202012Validator)


def test_the_example_run_is_one_that_the_scorer_could_have_made() -> None:
    scorer = load_scorers()[COMPLETED_RUN["scorerId"]]
    assert COMPLETED_RUN["scorerVersion"] == scorer.version
    assert COMPLETED_RUN["interpretation"] == scorer.interpret(COMPLETED_RUN["score"])
    for step, schema in scorer.step_schemas.items():
        jsonschema.validate(COMPLETED_RUN[step], schema)
    for item in COMPLETED_RUN["analyzeStepResult"]["results"]:
        assert TEXT[item["span"]["start"] : item["span"]["end"]] == item["opinion"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_error_is_a_problem_of_its_own_status(operation: Json) -> None:
    for status, response in operation["responses"].items():
        if int(status) < 400:
            continue
        content = resolved(response)["content"]
        assert set(content) == {"application/problem+json"}
        for example in content["application/problem+json"]["examples"].values():
            assert example["value"]["status"] == int(status)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_parameter_is_described_well_enough_to_be_used(operation: Json) -> None:
    names = [(parameter["in"], parameter["name"]) for parameter in operation.get("parameters", [])]
    assert len(names) == len(set(names))
    assert all(parameter["schema"] for parameter in operation.get("parameters", []))
    assert operation["summary"]


def test_headers_are_documented_where_they_are_sent() -> None:
    paths = document()["paths"]
    create = paths["/v1/scorers/{scorerId}/runs"]["post"]["responses"]
    assert {"Location", "ETag", "Preference-Applied", "Idempotent-Replayed", "Vary"} <= set(create["200"]["headers"])
    assert "Retry-After" in create["202"]["headers"]
    assert {"ETag", "Retry-After"} <= set(paths["/v1/runs/{runId}"]["get"]["responses"]["200"]["headers"])
    assert "Retry-After" in resolved(create["503"])["headers"]
    assert "Location" in resolved(create["502"])["headers"]


def test_answers_are_open_for_fields_to_come_and_bodies_are_closed() -> None:
    schemas = document()["components"]["schemas"]
    for name in ("Run", "Problem", "ScorerDescription", "Readiness"):
        assert "additionalProperties" not in schemas[name]
    for name in ("ScoreRequest", "MultiScoreRequest", "MeasureRequest"):
        assert schemas[name]["additionalProperties"] is False


def test_without_docs_there_is_no_reference() -> None:
    app = build_app(lifespan=None, request_finished=lambda *_: None, exposition=lambda _: (b"", ""), docs=False)  # type: ignore[arg-type]
    assert "/docs" not in {route.endpoint.path for route in app.routes}  # type: ignore[attr-defined]


def test_it_is_the_same_every_time() -> None:
    assert json.loads(document_json()) == document()
