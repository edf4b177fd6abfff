"""From a definition to a scorer that runs."""

from dataclasses import dataclass

from app.custom.definition import ScorerDefinition
from app.judge.scorer import Measure


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class CustomScorer(Measure):
    """A scorer made of a definition; it asks a judge."""

    uses_judge = True

    definition: ScorerDefinition


def compiled(definition: ScorerDefinition) -> CustomScorer:
    """Return the scorer that a definition describes.

    Raises InvalidRequest with every fault that was found, each with a pointer into the definition.
    """
    raise NotImplementedError
