"""Scorers of packages and of files, beside Assay's own."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.adapters.standing_scorers import standing_scorers
from app.runs.catalog import Origin
from app.scorers import load_scorers
from app.settings import SettingsError
from tests.unit.definitions import CALM

SHOUTING = """
from dataclasses import replace
from app.scorers.completeness import SCORER

SHOUTING = replace(SCORER, id="{id}", version="7")
NUMBER = 7
"""


def installed(folder: Path, name: str, scorer_id: str, value: str, version: str = "1.2") -> None:
    """Put a package into folder as an installer would."""
    (folder / f"{name}.py").write_text(SHOUTING.format(id=scorer_id))
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[assay.scorers]\n{name}-scorer = {value}\n")


Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("loud", "louder"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def install_here(name: str = "loud", scorer_id: str = "shouting", value: str = "loud:SHOUTING") -> None:
        installed(tmp_path, name, scorer_id, value)

    return install_here


def test_without_files_and_packages_there_are_assay_s_own() -> None:
    offers = standing_scorers(None)
    assert offers.keys() == load_scorers().keys()
    assert {offer.origin for offer in offers.values()} == {Origin.BUILTIN}
    assert all(offer.definition is None for offer in offers.values())


def test_a_package_brings_a_scorer(install: Install) -> None:
    install()
    offer = standing_scorers(None)["shouting"]
    assert (offer.origin, offer.definition, offer.scorer.version) == (Origin.PACKAGE, None, "7")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("loud:NUMBER", "loud:NUMBER is no scorer, but int"),
        ("loud:MISSING", "loud:MISSING can't be loaded (AttributeError: module 'loud' has no attribute 'MISSING')"),
        ("absent:SCORER", "absent:SCORER can't be loaded (ModuleNotFoundError: No module named 'absent')"),
    ],
)
def test_a_package_without_one_is_named(install: Install, value: str, told: str) -> None:
    install(value=value)
    with pytest.raises(SettingsError) as stopped:
        standing_scorers(None)
    assert str(stopped.value) == f"entry point loud-scorer of loud 1.2: {told}"


def test_a_package_can_t_take_an_id_of_assay_s(install: Install) -> None:
    install(scorer_id="bias")
    with pytest.raises(SettingsError) as stopped:
        standing_scorers(None)
    assert str(stopped.value) == (
        "entry point loud-scorer of loud 1.2: the id bias belongs to Assay itself; choose another"
    )


def test_two_packages_can_t_have_the_same_id(install: Install) -> None:
    install()
    install("louder", value="louder:SHOUTING")
    with pytest.raises(SettingsError) as stopped:
        standing_scorers(None)
    assert str(stopped.value) == (
        "entry point louder-scorer of louder 1.2: the id shouting belongs to entry point loud-scorer of loud 1.2; "
        "choose another"
    )


# --- files -----------------------------------------------------------------------------------------------------------

CALM_TOML = """
id = "calm"
version = "1"
description = "How many sentences of an answer stay calm."
direction = "higher_is_better"
score = "double(size(verdicts.filter(v, v.calm == 'yes'))) / double(size(verdicts))"

[analyze]
instructions = "Is each segment calm?"
forEach = "segments"

[analyze.schema]
type = "object"
required = ["calm"]
additionalProperties = false
properties.calm = { type = "string", enum = ["yes", "no"] }
"""


def test_files_bring_scorers(tmp_path: Path) -> None:
    (tmp_path / "calm.toml").write_text(CALM_TOML)
    (tmp_path / "calmer.json").write_text(json.dumps({**CALM, "id": "calmer"}))
    (tmp_path / "README.md").write_text("How we judge.")
    (tmp_path / "old").mkdir()
    offers = standing_scorers(tmp_path)
    assert offers.keys() - load_scorers().keys() == {"calm", "calmer"}
    for scorer_id in ("calm", "calmer"):
        offer = offers[scorer_id]
        assert offer.origin is Origin.FILE
        assert offer.definition is not None
        assert json.loads(offer.definition)["id"] == offer.scorer.id == scorer_id


def told_of(folder: Path, name: str, content: str | bytes) -> list[str]:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SettingsError) as stopped:
        standing_scorers(folder)
    return str(stopped.value).splitlines()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("calm.toml", "id = ", "this is not TOML: Invalid value (at end of document)"),
        ("calm.json", "[1,", "this is not JSON: Expecting value: line 1 column 4 (char 3)"),
        ("calm.json", "[" * 100_000, "this is not JSON: "),
        ("calm.json", b"\xff", "the file is not UTF-8"),
        ("calm.yaml", "id: calm", "YAML is not read; write the definition as TOML or JSON"),
        ("calm.json", "[]", "#: "),
        ("calm.toml", CALM_TOML.replace('"higher_is_better"', "2026-01-31"), "#/direction: "),
        ("calm.toml", CALM_TOML.replace('"calm"', '"bias"', 1), "the id bias belongs to Assay itself; choose another"),
        ("calm.toml", CALM_TOML.replace("double(", "no_function("), "#/score: "),
    ],
)
def test_a_file_s_fault_is_told_in_one_line(tmp_path: Path, name: str, content: str | bytes, told: str) -> None:
    (line,) = told_of(tmp_path, name, content)
    assert line.startswith(f"ASSAY_SCORERS_DIR: {name}: {told}")


def test_every_fault_of_a_file_has_its_line(tmp_path: Path) -> None:
    broken: dict[str, Any] = {**CALM, "version": "", "colour": "red"}
    lines = told_of(tmp_path, "calm.json", json.dumps(broken))
    assert [line.split(": ")[:3] for line in lines] == [
        ["ASSAY_SCORERS_DIR", "calm.json", "#/version"],
        ["ASSAY_SCORERS_DIR", "calm.json", "#/colour"],
    ]


def test_two_files_can_t_have_the_same_id(tmp_path: Path) -> None:
    (tmp_path / "calm.toml").write_text(CALM_TOML)
    (line,) = told_of(tmp_path, "other.json", json.dumps(CALM))
    assert line == (
        "ASSAY_SCORERS_DIR: other.json: the id calm belongs to ASSAY_SCORERS_DIR: calm.toml; choose another"
    )


def test_a_file_that_can_t_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "calm.toml").symlink_to(tmp_path / "nowhere.toml")
    with pytest.raises(SettingsError, match=r"ASSAY_SCORERS_DIR: calm.toml: the file can't be read: No such file"):
        standing_scorers(tmp_path)


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="ASSAY_SCORERS_DIR: nowhere can't be read: No such file"):
        standing_scorers(tmp_path / "nowhere")
