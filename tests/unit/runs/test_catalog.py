"""Which scorers a tenant may use, and which one a run was accepted for."""

import asyncio
import json
from typing import Any

import pytest

from app.custom.definition import ScorerDefinition
from app.domain.errors import (
    Forbidden,
    InvalidRequest,
    NotFound,
    ScorersFull,
    ScorerUnusable,
    VersionConflict,
)
from app.domain.request import RunRequest
from app.domain.run import VERBATIM_FIELDS
from app.ports import Registration
from app.runs.catalog import MAX_DEFINITION_BYTES, Catalog, CompiledDefinitions, Offer, Origin
from app.scorers import load_scorers
from tests.unit.definitions import CALM
from tests.unit.fakes import DictDefinitions

pytestmark = pytest.mark.anyio

BIAS = load_scorers()["bias"]
UNREADABLE = '{"id": "older", "fieldOfAnotherVersion": 1}'


@pytest.fixture
def own() -> DictDefinitions:
    return DictDefinitions()


@pytest.fixture
def catalog(own: DictDefinitions) -> Catalog:
    return Catalog({"bias": Offer(BIAS, Origin.BUILTIN)}, own)


def definition(**changed: Any) -> ScorerDefinition:
    return ScorerDefinition.model_validate_json(json.dumps({**CALM, **changed}), strict=True)


def request_of(scorer_id: str, definition: str | None = None) -> RunRequest:
    return RunRequest(scorer_id=scorer_id, definition=definition, output="A text.", options={}, timeout_ms=1000)


async def test_a_registered_scorer_is_its_tenant_s_alone(catalog: Catalog) -> None:
    offer, is_new = await catalog.register("a", definition())
    assert (offer.origin, offer.scorer.id, is_new) == (Origin.CUSTOM, "calm", True)
    found = await catalog.find("a", "calm")
    assert found is not None
    assert (found.origin, found.definition) == (Origin.CUSTOM, definition().text)
    assert await catalog.find("b", "calm") is None
    assert [offer.scorer.id for offer in await catalog.all("a")] == ["bias", "calm"]
    assert [offer.scorer.id for offer in await catalog.all("b")] == ["bias"]


async def test_several_are_found_in_the_order_asked_for(catalog: Catalog) -> None:
    await catalog.register("a", definition())
    found = await catalog.find_each("a", ["calm", "missing", "bias", "calm"])
    assert [offer and offer.scorer.id for offer in found] == ["calm", None, "bias", "calm"]


async def test_the_same_body_again_is_no_new_version(catalog: Catalog) -> None:
    await catalog.register("a", definition())
    offer, is_new = await catalog.register("a", definition(needs=["output"]))
    assert (offer.scorer.version, is_new) == ("1", False)


async def test_a_version_never_changes_its_meaning(catalog: Catalog) -> None:
    await catalog.register("a", definition())
    with pytest.raises(VersionConflict):
        await catalog.register("a", definition(description="Something else."))
    offer, is_new = await catalog.register("a", definition(version="2", description="Something else."))
    assert (offer.scorer.version, is_new) == ("2", True)
    current = await catalog.find("a", "calm")
    assert current is not None
    assert current.scorer.version == "2"


@pytest.mark.parametrize("refusal", [Registration.TOO_MANY_SCORERS, Registration.TOO_MANY_VERSIONS])
async def test_what_is_full_says_what_to_do(catalog: Catalog, own: DictDefinitions, refusal: Registration) -> None:
    own.refusal = refusal
    with pytest.raises(ScorersFull, match="delete"):
        await catalog.register("a", definition())


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"id": "bias"}, "#/id"),
        ({"score": "no_function(1)"}, "#/score"),
        ({"options": {"type": "object", "description": "x" * MAX_DEFINITION_BYTES}}, "#"),
    ],
)
async def test_a_faulty_definition_is_not_kept(
    catalog: Catalog, own: DictDefinitions, changed: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await catalog.register("a", definition(**changed))
    assert refused.value.faults[0].pointer == pointer
    with pytest.raises(InvalidRequest):
        await catalog.tried(definition(**changed))
    assert not own.stored


async def test_a_dry_run_shows_the_example_and_keeps_nothing(catalog: Catalog, own: DictDefinitions) -> None:
    shown = await catalog.tried(definition())
    assert (shown.status, shown.score) == ("completed", 0.5)
    assert not own.stored


async def test_a_dry_run_needs_an_example(catalog: Catalog) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await catalog.tried(definition(example=None))
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [("#/example", "missing")]


async def test_a_definition_without_an_example_may_be_registered(catalog: Catalog) -> None:
    assert (await catalog.register("a", definition(example=None)))[1]


async def test_own_scorers_can_be_deleted_and_the_installation_s_can_t(catalog: Catalog) -> None:
    await catalog.register("a", definition())
    with pytest.raises(NotFound):
        await catalog.remove("b", "calm")
    await catalog.remove("a", "calm")
    assert await catalog.find("a", "calm") is None
    with pytest.raises(NotFound):
        await catalog.remove("a", "calm")
    with pytest.raises(Forbidden):
        await catalog.remove("a", "bias")


async def test_the_installation_s_scorer_comes_before_one_that_had_its_id_first(
    catalog: Catalog, own: DictDefinitions
) -> None:
    await own.add("a", "bias", "9", definition(id="bias", version="9").text)
    found = await catalog.find("a", "bias")
    assert found is not None
    assert found.origin is Origin.BUILTIN
    assert [offer.origin for offer in await catalog.all("a")] == [Origin.BUILTIN]
    await catalog.remove("a", "bias")
    assert not own.stored


async def test_a_run_has_the_scorer_that_it_was_accepted_for(catalog: Catalog) -> None:
    carried = definition().text
    await catalog.register("a", definition(version="2"))
    first = await catalog.of_run(request_of("calm", carried))
    assert first.version == "1"
    assert await catalog.of_run(request_of("calm", carried)) is first
    assert await catalog.of_run(request_of("bias")) is BIAS
    with pytest.raises(ScorerUnusable, match="install it"):
        await catalog.of_run(request_of("shouting"))


@pytest.mark.parametrize("kept", [UNREADABLE, definition(id="older", score="no_function(1)").text])
async def test_what_another_version_of_assay_took_may_be_unusable(
    catalog: Catalog, own: DictDefinitions, kept: str
) -> None:
    await own.add("a", "older", "1", kept)
    await catalog.register("a", definition())
    assert [offer.scorer.id for offer in await catalog.all("a")] == ["bias", "calm"]
    with pytest.raises(ScorerUnusable, match="register a corrected one"):
        await catalog.find("a", "older")
    with pytest.raises(ScorerUnusable):
        await catalog.of_run(request_of("older", kept))
    await catalog.remove("a", "older")


async def test_a_definition_is_compiled_once_for_all_who_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = CompiledDefinitions(most=2)
    one, two, three = (definition(version=version).text for version in "123")
    first, *others = await asyncio.gather(*(compiled.scorer(one) for _ in range(20)))
    assert all(other is first for other in others)
    await compiled.scorer(two)
    assert await compiled.scorer(one) is first
    await compiled.scorer(three)
    assert await compiled.scorer(one) is first
    monkeypatch.setattr("app.runs.catalog.compiled", no_more)
    with pytest.raises(AssertionError):
        await compiled.scorer(two)
    monkeypatch.undo()
    assert (await compiled.scorer(two)).version == "2"


def no_more(definition: ScorerDefinition) -> None:
    raise AssertionError(definition.version)


async def test_where_texts_are_not_kept_its_own_names_for_them_count(catalog: Catalog) -> None:
    schema = {**CALM["analyze"]["schema"], "properties": {"calm": {"type": "boolean"}, "quote": {"type": "string"}}}
    noting = definition(analyze={**CALM["analyze"], "schema": schema}, score="0.5", example=None)
    assert await catalog.verbatim_fields(request_of("calm", noting.text)) == VERBATIM_FIELDS | {"quote"}
    assert await catalog.verbatim_fields(request_of("calm", UNREADABLE)) == VERBATIM_FIELDS
    assert await catalog.verbatim_fields(request_of("bias")) == VERBATIM_FIELDS
