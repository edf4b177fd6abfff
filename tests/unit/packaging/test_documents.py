"""What the documents say is what the code does."""

import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from app.adapters.models_file import read_models_file
from app.adapters.providers import PROVIDERS
from app.domain.request import Options
from app.observe.metrics import HttpMetrics, PrometheusTelemetry, QueueMetrics, WorkerMetrics
from app.scorers import load_scorers
from app.settings import Settings

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def settings_table() -> str:
    """The table of settings as the code has them."""
    rows = ["| variable | default | |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else f"`{str(field.default).lower()}`"
        rows.append(f"| `ASSAY_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(rows)


def test_the_readme_has_every_setting_with_its_default() -> None:
    between = re.search(r"<!-- settings: [^>]*-->\n(.*?)<!-- /settings -->", README, flags=re.DOTALL)
    assert between is not None
    assert between.group(1).strip() == settings_table(), f"put this table into the README:\n{settings_table()}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_settings_that_exist_are_named(document: Path) -> None:
    known = {f"ASSAY_{name.upper()}" for name in Settings.model_fields} | {"ASSAY_PYTHON"}
    assert set(re.findall(r"ASSAY_[A-Z_]*[A-Z]", document.read_text(encoding="utf-8"))) <= known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_the_metrics_table_is_the_registry() -> None:
    registry = CollectorRegistry()
    HttpMetrics(registry)
    QueueMetrics(registry)
    WorkerMetrics(registry)
    PrometheusTelemetry(registry, scorers=())
    exposed = {
        metric.name + {"counter": "_total", "info": "_info"}.get(metric.type, "") for metric in registry.collect()
    }
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(assay_\w+)` \|", text, flags=re.MULTILINE)) == exposed


@pytest.mark.parametrize("scorer", load_scorers())
def test_every_scorer_has_its_page_bands_and_options(scorer: str) -> None:
    page = (ROOT / "docs/scorers.md").read_text(encoding="utf-8")
    assert f"\n## {scorer}\n" in page
    assert f"| `{scorer}` |" in README
    section = page.partition(f"\n## {scorer}\n")[2].partition("\n## ")[0]
    for band in load_scorers()[scorer].bands:
        assert re.search(rf"{band.low}.*\| {re.escape(band.name)} \|", section), band.name
    for field in load_scorers()[scorer].options.model_fields.values():
        assert f"| `{field.alias}` |" in page


def test_common_options_are_all_there_is() -> None:
    page = (ROOT / "docs/scorers.md").read_text(encoding="utf-8").partition("## Options")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
    known = {field.alias for scorer in load_scorers().values() for field in scorer.options.model_fields.values()}
    assert documented == known
    assert {field.alias for field in Options.model_fields.values()} <= documented


def test_the_example_of_a_models_file_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/judges.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    path = tmp_path / "models.toml"
    path.write_text(block, encoding="utf-8")
    assert [entry.id for entry in read_models_file(path).models] == ["openai/gpt-4.1-mini", "vllm/qwen"]


def test_known_providers_are_named() -> None:
    page = (ROOT / "docs/judges.md").read_text(encoding="utf-8")
    for name in PROVIDERS.keys() - {"local"}:
        assert f"`{name}`" in page, name


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs/decisions"
    listed = set(re.findall(r"\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert listed == {path.name for path in folder.glob("[0-9]*.md")}


def test_make_help_lists_every_target_the_documents_name() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    targets = set(re.findall(r"^  make ([a-z-]+)", shown.stdout, flags=re.MULTILINE))
    for document in DOCUMENTS:
        named = re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert set(named) <= targets, document
