"""The scorers there are, described well enough to call them."""

from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import JSON, listing
from app.api.queries import NoParameters, read_query
from app.api.state import deps_of
from app.domain.errors import NotFound
from app.domain.model import Model
from app.domain.request import ExampleSet, Scoring, Strategy
from app.domain.run import Direction
from app.judge.scorer import Measure


class BandDescription(Model):
    """A named part of the range; `interpretation` of a run is one of these names."""

    name: str
    low: float
    high: float


class ScorerDescription(Model):
    """What a scorer measures, what it needs and what its runs hold."""

    id: str
    version: str = Field(description="Changes whenever a prompt, a schema or the formula does")
    description: str
    direction: Direction
    range: tuple[float, float] = Field(default=(0.0, 1.0), description="Before `scale` is applied")
    strategies: list[Strategy] = Field(description="The values of `options.strategy` that it takes")
    scorings: list[Scoring] = Field(description="The values of `options.scoring` that it takes")
    example_sets: list[ExampleSet] = Field(description="The values of `options.examples` that it takes")
    needs: list[str] = Field(description="Inputs without which the scorer refuses; some options change them")
    needs_messages: bool = Field(
        description="Whether `output` has to be messages; they may hold tool calls and no text then"
    )
    uses_judge: bool = Field(description="Whether a judge model is asked; if not, runs have no `model` and no prompts")
    bands: list[BandDescription]
    options_schema: dict[str, Any] = Field(description="JSON schema of `options`")
    step_schemas: dict[str, Any] = Field(description="JSON schemas of `preprocessStepResult` and `analyzeStepResult`")


def describe(scorer: Measure) -> ScorerDescription:
    """Return what callers are told about a scorer."""
    return ScorerDescription(
        id=scorer.id,
        version=scorer.version,
        description=scorer.description,
        direction=scorer.direction,
        needs=list(scorer.needs),
        needs_messages=scorer.needs_messages,
        strategies=list(scorer.strategies),
        scorings=list(scorer.scorings),
        example_sets=list(scorer.example_sets),
        uses_judge=scorer.uses_judge,
        bands=[BandDescription(name=band.name, low=band.low, high=band.high) for band in scorer.bands],
        options_schema=scorer.options.model_json_schema(),
        step_schemas=scorer.step_schemas,
    )


async def list_scorers(request: Request) -> Response:
    """Answer with all scorers."""
    read_query(request.scope, NoParameters)
    scorers = deps_of(request.scope).scorers.values()
    return listing([describe(scorer).model_dump_json().encode() for scorer in scorers], None)


async def get_scorer(request: Request) -> Response:
    """Answer with one scorer."""
    read_query(request.scope, NoParameters)
    scorer = deps_of(request.scope).scorers.get(request.path_params["scorer_id"])
    if scorer is None:
        raise NotFound("There is no such scorer; GET /v1/scorers lists them")
    return Response(describe(scorer).model_dump_json(), 200, media_type=JSON)
