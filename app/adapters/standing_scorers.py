"""The scorers of this installation: Assay's own, those of installed packages, and those of ASSAY_SCORERS_DIR."""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from app.computed.scorer import ComputedScorer
from app.custom.compiled import CustomScorer
from app.custom.definition import ScorerDefinition
from app.domain.errors import InvalidRequest
from app.domain.faults import faults_of
from app.judge.scorer import Scorer
from app.runs.catalog import Offer, Origin, checked
from app.scorers import AnyScorer, load_scorers
from app.settings import SettingsError

ENTRY_POINTS: Final = "assay.scorers"
VARIABLE: Final = "ASSAY_SCORERS_DIR"
READERS: Final[Mapping[str, Callable[[str], Any]]] = {".toml": tomllib.loads, ".json": json.loads}
YAML: Final = frozenset({".yaml", ".yml"})


def standing_scorers(folder: Path | None) -> dict[str, Offer]:
    """Return all scorers of this installation by id.

    Raises SettingsError with a line for each fault of a file, or for the first package that can't be used, and when
    two scorers have the same id.
    """
    offers = {scorer.id: Offer(scorer, Origin.BUILTIN) for scorer in load_scorers().values()}
    sources = dict.fromkeys(offers, "Assay itself")
    for source, offer in (*_of_packages(), *_of_files(folder)):
        scorer_id = offer.scorer.id
        if scorer_id in offers:
            raise SettingsError(f"{source}: the id {scorer_id} belongs to {sources[scorer_id]}; choose another")
        offers[scorer_id], sources[scorer_id] = offer, source
    return offers


def _of_packages() -> Iterator[tuple[str, Offer]]:
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (_package(entry), entry.name)):
        source = f"entry point {entry.name} of {_package(entry)}"
        yield source, Offer(_loaded(entry, source), Origin.PACKAGE)


def _package(entry: EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _loaded(entry: EntryPoint, source: str) -> AnyScorer:
    try:
        scorer: Any = entry.load()
    except Exception as error:
        raise SettingsError(f"{source}: {entry.value} can't be loaded ({type(error).__name__}: {error})") from error
    if isinstance(scorer, Scorer | ComputedScorer | CustomScorer):
        return scorer
    raise SettingsError(f"{source}: {entry.value} is no scorer, but {type(scorer).__name__}")


def _of_files(folder: Path | None) -> Iterator[tuple[str, Offer]]:
    for path in _files(folder):
        source = f"{VARIABLE}: {path.name}"
        if path.suffix in YAML:
            raise SettingsError(f"{source}: YAML is not read; write the definition as TOML or JSON")
        if path.suffix in READERS:
            yield source, _defined(path, source)


def _files(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise SettingsError(f"{VARIABLE}: {folder.name} can't be read: {error.strerror}") from None


def _defined(path: Path, source: str) -> Offer:
    document = _document(path, source)
    try:
        # What JSON has no form for, such as TOML's dates, is taken as text.
        written = json.dumps(document, default=str)
        definition = ScorerDefinition.model_validate_json(written, strict=True, by_alias=True, by_name=False)
        return Offer(checked(definition), Origin.FILE, definition.text)
    except ValidationError as error:
        faults = faults_of(error, document)
    except InvalidRequest as error:
        faults = error.faults
    raise SettingsError("\n".join(f"{source}: {fault.pointer}: {fault.detail}" for fault in faults))


def _document(path: Path, source: str) -> Any:
    try:
        return READERS[path.suffix](path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{source}: the file can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{source}: the file is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{source}: this is not {path.suffix[1:].upper()}: {error}") from None
