"""What a run has used and covered so far; windows of a step add to it side by side."""

from collections import Counter
from dataclasses import dataclass, field

from app.domain.run import Coverage, Usage
from app.ports import Completion, Source


@dataclass(slots=True)
class Tally:
    """Running counts of one run.

    `model` answered last for `judge`, the first of those who judge; `answered_by` are all that answered for each.
    """

    judge: str
    model: str
    answered_by: dict[str, set[str]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    judged: int = 0
    answers_due: int = 0
    sources: Counter[Source] = field(default_factory=Counter)

    @property
    def coverage(self) -> Coverage:
        """How many items of the current step were asked about, and how many are judged."""
        if self.answers_due == self.asked:
            return Coverage(asked=self.asked, judged=self.judged)
        return Coverage(asked=self.asked, judged=self.asked * self.judged // self.answers_due)

    @property
    def source(self) -> Source:
        """Where the current step's answers came from, the dearest way first."""
        return next((source for source in (Source.LLM, Source.COALESCED) if self.sources[source]), Source.CACHE)

    def begin_step(self, asked: int) -> None:
        """Count for another step, about this many items; `answers_due` may be set higher, to a multiple of them."""
        self.asked, self.judged, self.answers_due = asked, 0, asked
        self.sources.clear()

    def called(self, judge: str, completion: Completion) -> None:
        """Count a reply to what a judge was asked."""
        self._heard(judge, completion.model)
        self.usage = Usage(
            judge_calls=self.usage.judge_calls + 1,
            cache_hits=self.usage.cache_hits,
            input_tokens=self.usage.input_tokens + completion.input_tokens,
            output_tokens=self.usage.output_tokens + completion.output_tokens,
            cost_usd=_sum(self.usage.cost_usd, completion.cost_usd),
        )

    def answered(self, judge: str, source: Source, model: str, items: int) -> None:
        """Count an answer of model for a judge, and the items in it that no reply was counted for."""
        self._heard(judge, model)
        self.judged += items
        self.sources[source] += 1
        if source is not Source.LLM:
            self.usage = self.usage.model_copy(update={"cache_hits": self.usage.cache_hits + 1})

    def _heard(self, judge: str, model: str) -> None:
        self.answered_by.setdefault(judge, set()).add(model)
        if judge == self.judge:
            self.model = model


def _sum(so_far: float | None, cost: float | None) -> float | None:
    return so_far if cost is None else (so_far or 0.0) + cost
