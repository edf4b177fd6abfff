"""Schemas of bodies and answers, all from the pydantic models that read and write them."""

from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api.answers import PROMPT_FIELDS
from app.api.explanations import EXPLANATIONS
from app.api.health import Liveness, NotReady, Readiness
from app.api.openapi.wording import WORDS
from app.api.problems import Problem
from app.api.scorers import ScorerDescription
from app.api.scoring import MeasureRequest, MeasureResult
from app.custom.definition import ScorerDefinition
from app.custom.dry_run import DryRun
from app.domain.request import MultiScoreRequest, ScoreRequest
from app.domain.run import Run
from app.scorers import AnyScorer

Json = dict[str, Any]

NULL_DEFAULT: Final = ("default", None)
REF: Final = "#/components/schemas/{model}"
BODIES: Final[tuple[type[BaseModel], ...]] = (ScoreRequest, MultiScoreRequest, MeasureRequest)
ANSWERS: Final[tuple[type[BaseModel], ...]] = (
    Run,
    ScorerDescription,
    DryRun,
    MeasureResult,
    Problem,
    Liveness,
    Readiness,
    NotReady,
)
# What an answer may leave out; everything else is always there, null when it does not apply.
OPTIONAL: Final = {
    "Run": PROMPT_FIELDS,
    "ScorerDescription": ("definition",),
    "Problem": ("runId", "errors"),
    "NotReady": ("runId", "errors"),
}


def schema_ref(name: str) -> Json:
    """Return a reference to a named schema."""
    return {"$ref": REF.format(model=name)}


def component_schemas(scorers: dict[str, AnyScorer]) -> Json:
    """Return all named schemas."""
    bodies = _as_strict_as_we_are(_body_schemas(scorers))
    answers = {name: _as_answer(name, schema) for name, schema in _definitions(ANSWERS, "serialization").items()}
    answers["ErrorCode"]["description"] = _codes()
    named = {name: _plain(schema) for name, schema in (bodies | answers | _lists()).items()}
    for name, words in (WORDS | {"MultiScoreRequest": WORDS["ScoreRequest"] | WORDS["MultiScoreRequest"]}).items():
        for field, meaning in words.items():
            named[name]["properties"][field]["description"] = meaning
    return dict(sorted(named.items()))


def _definitions(models: tuple[type[BaseModel], ...], mode: Any) -> Json:
    _, schema = models_json_schema([(model, mode) for model in models], ref_template=REF)
    definitions: Json = schema["$defs"]
    return definitions


def _body_schemas(scorers: dict[str, AnyScorer]) -> Json:
    options = tuple(dict.fromkeys(scorer.options for scorer in scorers.values()))
    definitions = _definitions((*BODIES, ScorerDefinition, *options), "validation")
    own = [schema_ref(model.__name__) for model in options]
    for name in ("ScoreRequest", "MultiScoreRequest"):
        definitions[name]["properties"]["options"] = {
            "anyOf": [*own, {"type": "object", "description": "Options of a scorer that is not Assay's own"}],
            "description": "What every scorer understands and the scorer's own, see GET /v1/scorers/{scorerId}",
        }
    return definitions


def _as_strict_as_we_are(definitions: Json) -> Json:
    """Say in the schema what the validators check: a scored text is not blank, metadata has no other names."""
    for name in BODIES:
        properties = definitions[name.__name__]["properties"]
        for branch in properties["output"].get("anyOf", [properties["output"]]):
            if branch.get("type") == "string":
                branch["pattern"] = r"\S"
        if "metadata" in properties:
            properties["metadata"]["additionalProperties"] = False
    return definitions


def _plain(schema: Json) -> Json:
    """Drop what pydantic adds and nobody reads: titles made of field names, and null as the default."""
    fields = {
        field: {key: value for key, value in described.items() if key != "title" and (key, value) != NULL_DEFAULT}
        for field, described in schema.get("properties", {}).items()
    }
    plain = {key: value for key, value in schema.items() if key != "title"}
    return plain | {"properties": fields} if fields else plain


def _as_answer(name: str, schema: Json) -> Json:
    """Open a schema for fields to come, which clients must ignore, and name the fields that are always there."""
    opened = {key: value for key, value in schema.items() if key != "additionalProperties"}
    if "properties" in opened:
        opened["required"] = [field for field in opened["properties"] if field not in OPTIONAL.get(name, ())]
    return opened


def _lists() -> Json:
    return {
        "Runs": _object({"runs": {"type": "array", "items": schema_ref("Run")}}),
        "RunPage": _page("Run"),
        "ScorerPage": _page("ScorerDescription"),
        "ScorerDescriptionOrDryRun": {"anyOf": [schema_ref("ScorerDescription"), schema_ref("DryRun")]},
    }


def _page(item: str) -> Json:
    cursor = {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "description": "Send it as `cursor` for the next page; null at the end",
    }
    return _object({"items": {"type": "array", "items": schema_ref(item)}, "nextCursor": cursor})


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _codes() -> str:
    lines = [f"- `{code}`: {meaning}" for code, meaning in EXPLANATIONS.items()]
    return "\n".join(["The closed list of problem codes.", "", *lines])
