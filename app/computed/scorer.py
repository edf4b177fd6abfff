"""What a scorer is that needs no judge: a pure function from texts and options to a value, with its words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.domain.model import Model
from app.domain.request import Options
from app.judge.scorer import Measure


class Inputs(NamedTuple):
    """The texts of a request: `output` is what is scored, and what spans refer to."""

    output: str
    input: str | None = None
    ground_truth: str | None = None


class Result(NamedTuple):
    """What a computation finds: a value in 0..1, or None when there is nothing to score.

    `items` is how many things were looked at. `sentence` names one of the scorer's `reasons`, whose placeholders
    `facts` fill; facts are numbers or names of ours and never a caller's text.
    """

    value: float | None
    analysis: Model
    items: int
    sentence: str
    facts: Mapping[str, str | int | float] = {}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ComputedScorer(Measure):
    """A scorer that needs no judge, complete: a module of `app.scorers` that defines it as `SCORER` is served.

    `compute` is deterministic and takes time and memory in proportion to the texts, seconds for a million code points.
    `reasons` are its sentences by name, each by language (English at least). `needs_under` tells what it
    needs where that depends on the options.
    """

    uses_judge = False

    compute: Callable[[Inputs, Any], Result]
    reasons: Mapping[str, Mapping[str, str]]
    needs_under: Callable[[Any], tuple[str, ...]] | None = None

    def needed(self, options: Options) -> tuple[str, ...]:
        """Return the inputs without which it can't score under these options."""
        return self.needs if self.needs_under is None else self.needs_under(options)
