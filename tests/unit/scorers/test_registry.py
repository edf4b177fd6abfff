import re
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import app.scorers
from app.computed.scorer import ComputedScorer
from app.domain.request import Options, Strategy
from app.judge.language import NAMES
from app.judge.scorer import Measure, Scorer
from app.scorers import load_scorers

SCORERS = load_scorers()


def test_every_module_is_found_under_its_name() -> None:
    modules = {path.stem for path in Path(app.scorers.__file__).parent.glob("*.py")} - {"__init__"}
    assert {scorer_id.replace("-", "_") for scorer_id in SCORERS} == modules
    assert all(scorer.id == scorer_id for scorer_id, scorer in SCORERS.items())


@pytest.fixture
def more_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(app.scorers, "__path__", [*app.scorers.__path__, str(tmp_path)])
    for name in ("twin", "shared_words"):
        monkeypatch.delitem(sys.modules, f"app.scorers.{name}", raising=False)
    return tmp_path


def test_two_scorers_of_one_id_are_an_error(more_modules: Path) -> None:
    (more_modules / "twin.py").write_text("from app.scorers.bias import SCORER")
    with pytest.raises(ValueError, match="bias"):
        load_scorers()


def test_a_module_without_a_scorer_is_no_scorer(more_modules: Path) -> None:
    (more_modules / "shared_words.py").write_text("WORDS = ()")
    assert load_scorers().keys() == SCORERS.keys()


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS.keys())
def test_scorers_are_complete(scorer: Measure) -> None:
    assert scorer.version
    assert len(scorer.description) > 40
    assert scorer.needs
    assert issubclass(scorer.options, Options)
    for schema in scorer.step_schemas.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS.keys())
def test_a_form_can_be_drawn_of_the_options(scorer: Measure) -> None:
    schema = scorer.options.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        for name, option in part.get("properties", {}).items():
            assert option["description"], name
            assert "default" in option or name in part["required"], name
    titles = {name: option["title"] for name, option in schema["properties"].items() if "title" in option}
    assert (titles["includeReason"], titles["language"]) == ("Include reason", "Language")


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS.keys())
def test_bands_cover_the_range_in_order(scorer: Measure) -> None:
    bounds = [bound for band in scorer.bands for bound in (band.low, band.high)]
    assert bounds == sorted(bounds)
    assert (bounds[0], bounds[-1]) == (0.0, 1.0)
    for band in scorer.bands:
        assert scorer.interpret(band.low) == scorer.interpret(band.high) == band.name


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS.keys())
def test_a_number_between_two_bands_belongs_to_the_upper(scorer: Measure) -> None:
    for lower, upper in zip(scorer.bands, scorer.bands[1:], strict=False):
        between = {round(lower.high + 0.0001, 4), round(upper.low - 0.0001, 4)}
        assert {scorer.interpret(value) for value in between if value > lower.high} == {upper.name}


@pytest.mark.parametrize("scorer", [one for one in SCORERS.values() if isinstance(one, Scorer)], ids=lambda one: one.id)
def test_what_a_judge_is_asked_is_complete(scorer: Scorer) -> None:
    assert scorer.uses_judge
    assert scorer.needed(scorer.options.model_construct()) == scorer.needs
    assert scorer.strategies == tuple(Strategy)
    assert (scorer.selected is None) == ("preprocessStepResult" not in scorer.step_schemas)
    assert scorer.selected is not None or all(inquiry.preprocess is None for inquiry in scorer.inquiries)
    assert scorer.nothing_found.keys() == scorer.nothing_to_score.keys() == NAMES.keys()


@pytest.mark.parametrize(
    "scorer", [one for one in SCORERS.values() if isinstance(one, ComputedScorer)], ids=lambda one: one.id
)
def test_what_is_computed_is_told_in_every_language(scorer: ComputedScorer) -> None:
    assert not scorer.uses_judge
    assert (scorer.strategies, scorer.scorings, scorer.example_sets) == ((), (), ())
    for sentences in scorer.reasons.values():
        assert sentences.keys() == NAMES.keys()
        placeholders = {language: sorted(re.findall(r"\{\w+\}", told)) for language, told in sentences.items()}
        assert all(names == placeholders["en"] for names in placeholders.values())
