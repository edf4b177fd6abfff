"""The scorers there are, described well enough to call them."""

import asyncio
from typing import Any

from pydantic import Field
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import JSON, listing
from app.api.auth import tenant_of
from app.api.bodies import read_model
from app.api.queries import Flag, NoParameters, read_query
from app.api.state import deps_of
from app.custom.definition import ScorerDefinition
from app.domain.errors import NotFound
from app.domain.model import Model
from app.domain.request import ExampleSet, Scoring, Strategy
from app.domain.run import Direction
from app.runs.catalog import Offer, Origin


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
    takes_votes: bool = Field(description="Whether `samples` and `models` may ask for several judgements")
    bands: list[BandDescription]
    options_schema: dict[str, Any] = Field(description="JSON schema of `options`")
    step_schemas: dict[str, Any] = Field(description="JSON schemas of `preprocessStepResult` and `analyzeStepResult`")
    origin: Origin = Field(
        description="`builtin`, a `file` or `package` of this server's operator, or your own `custom`"
    )
    definition: dict[str, Any] | None = Field(
        default=None, description="What the scorer was made of, where it is data; lists leave it out"
    )


class RegistrationParameters(Model):
    """Parameters of POST /v1/scorers."""

    dry_run: Flag = Field(default=False, description="Try the definition on its example and register nothing")


def describe(offer: Offer) -> ScorerDescription:
    """Return what callers are told about a scorer."""
    scorer = offer.scorer
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
        takes_votes=scorer.takes_votes,
        bands=[BandDescription(name=band.name, low=band.low, high=band.high) for band in scorer.bands],
        options_schema=scorer.options.model_json_schema(),
        step_schemas=dict(scorer.step_schemas),
        origin=offer.origin,
        definition=None if offer.definition is None else from_json(offer.definition),
    )


def _listed(offers: list[Offer]) -> list[bytes]:
    return [describe(offer).model_dump_json(exclude={"definition"}).encode() for offer in offers]


async def list_scorers(request: Request) -> Response:
    """Answer with all scorers that the caller may use."""
    read_query(request.scope, NoParameters)
    offers = await deps_of(request.scope).scorers.all(tenant_of(request.scope))
    # The schemas of a hundred scorers take longer than others should wait.
    return listing(await asyncio.to_thread(_listed, offers), None)


async def get_scorer(request: Request) -> Response:
    """Answer with one scorer."""
    read_query(request.scope, NoParameters)
    offer = await deps_of(request.scope).scorers.find(tenant_of(request.scope), request.path_params["scorer_id"])
    if offer is None:
        raise NotFound("There is no such scorer; GET /v1/scorers lists them")
    return Response(describe(offer).model_dump_json(), 200, media_type=JSON)


async def create_scorer(request: Request) -> Response:
    """Register a scorer's definition, or only try it."""
    parameters = read_query(request.scope, RegistrationParameters)
    definition = await read_model(request, ScorerDefinition)
    catalog = deps_of(request.scope).scorers
    if parameters.dry_run:
        return Response((await catalog.tried(definition)).model_dump_json(), 200, media_type=JSON)
    offer, is_new = await catalog.register(tenant_of(request.scope), definition)
    headers = {"Location": f"/v1/scorers/{offer.scorer.id}"}
    return Response(describe(offer).model_dump_json(), 201 if is_new else 200, headers, JSON)


async def delete_scorer(request: Request) -> Response:
    """Forget a scorer that was registered."""
    read_query(request.scope, NoParameters)
    await deps_of(request.scope).scorers.remove(tenant_of(request.scope), request.path_params["scorer_id"])
    return Response(status_code=204)
