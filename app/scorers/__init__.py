"""The scorers, one module each; every module here that defines `SCORER` is found."""

from importlib import import_module
from pkgutil import iter_modules

from app.computed.scorer import ComputedScorer
from app.custom.compiled import CustomScorer
from app.judge.scorer import Scorer

AnyScorer = Scorer | ComputedScorer | CustomScorer


def load_scorers() -> dict[str, AnyScorer]:
    """Return all scorers by id; raises ValueError when two modules claim the same id."""
    scorers: dict[str, AnyScorer] = {}
    for module in sorted(iter_modules(__path__), key=lambda module: module.name):
        scorer = getattr(import_module(f"{__name__}.{module.name}"), "SCORER", None)
        if scorer is None:
            continue
        if scorer.id in scorers:
            raise ValueError(f"two modules define the scorer {scorer.id}")
        scorers[scorer.id] = scorer
    return scorers
