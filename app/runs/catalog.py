"""The scorers that runs can be asked of: those of this installation, and each tenant's own."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import structlog
from pydantic import ValidationError

from app.custom.compiled import CustomScorer, compiled
from app.custom.definition import ScorerDefinition
from app.custom.dry_run import DryRun, dry_run
from app.domain.errors import (
    Fault,
    Forbidden,
    InvalidRequest,
    NotFound,
    ScorersFull,
    ScorerUnusable,
    VersionConflict,
)
from app.domain.request import RunRequest
from app.domain.run import VERBATIM_FIELDS
from app.ports import MAX_OWN_SCORERS, MAX_VERSIONS, DefinitionStore, Registration
from app.scorers import AnyScorer

log = structlog.get_logger()

MAX_DEFINITION_BYTES = 32_768
MAX_COMPILED = 256
"""Compiled definitions that a process keeps at hand."""


class Origin(StrEnum):
    """Where a scorer comes from: Assay, a file of the operator, an installed package, or its tenant's own."""

    BUILTIN = "builtin"
    FILE = "file"
    PACKAGE = "package"
    CUSTOM = "custom"


@dataclass(frozen=True, eq=False, slots=True)
class Offer:
    """A scorer that a tenant may use; `definition` is the JSON of one that is data."""

    scorer: AnyScorer
    origin: Origin
    definition: str | None = None


class CompiledDefinitions:
    """Scorers by the JSON of their definitions, those that were used last.

    A definition takes some milliseconds to compile: that happens in a thread, and once for all who want it.
    """

    def __init__(self, most: int = MAX_COMPILED) -> None:
        self._most = most
        self._compiling: dict[str, asyncio.Task[CustomScorer]] = {}

    async def scorer(self, text: str) -> CustomScorer:
        """Return the scorer; raises ScorerUnusable."""
        task = self._compiling.pop(text, None)
        if task is None or (task.done() and task.exception() is not None):
            task = asyncio.create_task(asyncio.to_thread(_scorer_of, text))
        self._compiling[text] = task
        if len(self._compiling) > self._most:
            del self._compiling[next(iter(self._compiling))]
        return await asyncio.shield(task)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Finds scorers by id; `standing` are the installation's, which all tenants share and nobody replaces."""

    standing: Mapping[str, Offer]
    own: DefinitionStore
    compiled: CompiledDefinitions = field(default_factory=CompiledDefinitions)

    async def find(self, tenant: str, scorer_id: str) -> Offer | None:
        """Return the scorer with that id, or None; raises ScorerUnusable and StoreUnavailable."""
        standing = self.standing.get(scorer_id)
        if standing is not None:
            return standing
        definition = await self.own.get(tenant, scorer_id)
        return None if definition is None else await self._own(definition)

    async def find_each(self, tenant: str, scorer_ids: Sequence[str]) -> list[Offer | None]:
        """Return the scorers with these ids, in their order, as find does."""
        return list(await asyncio.gather(*(self.find(tenant, scorer_id) for scorer_id in scorer_ids)))

    async def all(self, tenant: str) -> list[Offer]:
        """Return all scorers that the tenant may use; raises StoreUnavailable."""
        offers = list(self.standing.values())
        for definition in await self.own.all(tenant):
            try:
                offer = await self._own(definition)
            except ScorerUnusable:
                # Whoever asks for it by its id is told; it must not hide the others.
                log.warning("scorer_unusable")
                continue
            if offer.scorer.id not in self.standing:
                offers.append(offer)
        return offers

    async def of_run(self, request: RunRequest) -> AnyScorer:
        """Return the scorer that a run was accepted for; raises ScorerUnusable when it is not to be had here.

        What is data comes with the run, whatever became of it since; what is code is this installation's.
        """
        if request.definition is not None:
            return await self.compiled.scorer(request.definition)
        standing = self.standing.get(request.scorer_id)
        if standing is None:
            raise ScorerUnusable("The scorer of this run is not installed here any more; install it and retry")
        return standing.scorer

    async def verbatim_fields(self, request: RunRequest) -> frozenset[str]:
        """Return the names under which the step results of a run may quote submitted texts."""
        if request.definition is None:
            return VERBATIM_FIELDS
        try:
            return (await self.compiled.scorer(request.definition)).verbatim_fields
        except ScorerUnusable:
            # Such a run ends before its first step.
            return VERBATIM_FIELDS

    async def register(self, tenant: str, definition: ScorerDefinition) -> tuple[Offer, bool]:
        """Make a definition its scorer's newest version; returns the scorer, and whether the version is new.

        Raises InvalidRequest, VersionConflict, ScorersFull and StoreUnavailable.
        """
        self._refuse_taken(definition)
        scorer = await asyncio.to_thread(checked, definition)
        text = definition.text
        became = await self.own.add(tenant, definition.id, definition.version, text)
        if became is Registration.OTHER_BODY:
            raise VersionConflict("This version was registered with another body; register yours as a new version")
        if became is Registration.TOO_MANY_SCORERS:
            raise ScorersFull(f"{MAX_OWN_SCORERS} scorers are registered, and no more are kept; delete one")
        if became is Registration.TOO_MANY_VERSIONS:
            raise ScorersFull(f"This scorer has had {MAX_VERSIONS} versions; choose another id, or delete it first")
        return Offer(scorer, Origin.CUSTOM, text), became is Registration.NEW

    async def tried(self, definition: ScorerDefinition) -> DryRun:
        """Return what a definition shows of its example, which it must have; raises InvalidRequest."""
        self._refuse_taken(definition)
        return await asyncio.to_thread(tried, definition)

    async def remove(self, tenant: str, scorer_id: str) -> None:
        """Forget a scorer of the tenant's own; runs go on with it. Raises NotFound, Forbidden and StoreUnavailable."""
        if await self.own.remove(tenant, scorer_id):
            return
        if scorer_id in self.standing:
            raise Forbidden("This scorer belongs to the installation; only scorers that were registered can be deleted")
        raise NotFound("There is no such scorer; GET /v1/scorers lists them")

    async def _own(self, definition: str) -> Offer:
        return Offer(await self.compiled.scorer(definition), Origin.CUSTOM, definition)

    def _refuse_taken(self, definition: ScorerDefinition) -> None:
        if definition.id in self.standing:
            raise _refusal("#/id", "taken", "This id belongs to a scorer of the installation; choose another")


def checked(definition: ScorerDefinition) -> CustomScorer:
    """Return the scorer that a definition describes, tried on its example if it has one; raises InvalidRequest."""
    scorer = _compiled(definition)
    if definition.example is not None:
        dry_run(scorer, definition.example)
    return scorer


def tried(definition: ScorerDefinition) -> DryRun:
    """Return what a definition shows of its example, which it must have; raises InvalidRequest."""
    if definition.example is None:
        raise _refusal("#/example", "missing", "A dry run needs an example")
    return dry_run(_compiled(definition), definition.example)


def _compiled(definition: ScorerDefinition) -> CustomScorer:
    size = len(definition.text.encode())
    if size > MAX_DEFINITION_BYTES:
        raise _refusal("#", "too_long", f"A definition takes at most {MAX_DEFINITION_BYTES:,} bytes; this is {size:,}")
    return compiled(definition)


def _scorer_of(text: str) -> CustomScorer:
    try:
        return compiled(ScorerDefinition.model_validate_json(text, strict=True, by_alias=True, by_name=False))
    except (ValidationError, InvalidRequest):
        # It was valid in the version of Assay that took it.
        raise ScorerUnusable(
            "The definition of this scorer is not valid in this version of Assay; register a corrected one"
        ) from None


def _refusal(pointer: str, code: str, detail: str) -> InvalidRequest:
    return InvalidRequest("The request has faults; see errors", (Fault(pointer=pointer, code=code, detail=detail),))
