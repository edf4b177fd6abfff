"""The run: what is stored, what callers poll, what the worker fills in. There is one schema for all three."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from app.domain.errors import RunError
from app.domain.model import Model
from app.domain.request import MetadataValue

VERBATIM_FIELDS = frozenset(
    {
        *("opinion", "opinions", "text", "claim", "claims", "statement", "statements", "passage", "matched", "missing"),
        *("requirement", "question", "call"),
    }
)
"""Names under which step results quote submitted texts; `store: result` blanks them."""

MAX_HISTORY = 20
"""Attempts that a run remembers, the latest ones."""
SUSPECT_LOSSES = 2
"""A run that was lost so often may be what its processes died of, and is executed apart from other suspects."""
MAX_LOSSES = 3
"""A run that was lost so often is not executed again, unless somebody asks for it."""


class RunStatus(StrEnum):
    """Where a run stands; only queued and running move on."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    NOT_SCORABLE = "not_scorable"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return self not in (RunStatus.QUEUED, RunStatus.RUNNING)


class Direction(StrEnum):
    """Which end of the range is good."""

    LOWER_IS_BETTER = "lower_is_better"
    HIGHER_IS_BETTER = "higher_is_better"


class Step(StrEnum):
    """The judge's steps, as they are named in errors, events and metrics."""

    PREPROCESS = "preprocess"
    ANALYZE = "analyze"
    GENERATE_REASON = "generateReason"


class Span(Model):
    """A half-open range of Unicode code points in the scored text."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]


class Coverage(Model):
    """How many items the judge was asked about and how many it judged."""

    asked: int
    judged: int


class Usage(Model):
    """What the run cost; `cost_usd` is null when the judge's prices are not known."""

    judge_calls: int = 0
    cache_hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class Timings(Model):
    """Milliseconds; null for what did not happen."""

    queued_ms: float | None = None
    preprocess_ms: float | None = None
    analyze_ms: float | None = None
    generate_reason_ms: float | None = None
    total_ms: float | None = None


Basis = Literal["votes", "probabilities"]


class ScoreInterval(Model):
    """Where the score would lie if its items were judged again, with a probability of `level`; on the score's scale.

    `basis` is what tells so: the `votes` of samples or of a panel, or the judge's `probabilities` of its labels.
    """

    low: float
    high: float
    level: float
    basis: Basis


class PanelMember(Model):
    """What one model of a panel found: its own score (null when it is none), and on how many items it is outvoted."""

    model: str
    score: float | None
    dissents: int


class RunWarning(Model):
    """Something went wrong that did not cost the score."""

    code: str
    detail: str
    step: Step | None = None


class AttemptOutcome(StrEnum):
    """How an attempt ended: as the run did, or without the run's end."""

    COMPLETED = "completed"
    FAILED = "failed"
    NOT_SCORABLE = "not_scorable"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    LOST = "lost"
    GIVEN_BACK = "given_back"


class Attempt(Model):
    """One execution of a run; `ended_at` and `outcome` are null while it lasts."""

    number: int
    started_at: datetime
    ended_at: datetime | None = None
    outcome: AttemptOutcome | None = None


class Run(Model):
    """One text judged by one scorer."""

    run_id: str
    scorer_id: str
    scorer_version: str
    status: RunStatus
    score: float | None = None
    score_interval: ScoreInterval | None = None
    scale: float = 1.0
    range: tuple[float, float] = (0.0, 1.0)
    direction: Direction
    interpretation: str | None = None
    threshold: float | None = None
    passed: bool | None = None
    uncertain: bool = False
    reason: str | None = None
    coverage: Coverage | None = None
    preprocess_step_result: dict[str, Any] | None = None
    preprocess_prompt: str | None = None
    analyze_step_result: dict[str, Any] | None = None
    analyze_prompt: str | None = None
    generate_reason_prompt: str | None = None
    confidence: float | None = None
    agreement: float | None = None
    model: str | None = None
    models: list[str] | None = None
    panel: list[PanelMember] | None = None
    usage: Usage = Usage()
    timings: Timings = Timings()
    metadata: dict[str, MetadataValue] = Field(default_factory=dict)
    warnings: list[RunWarning] = Field(default_factory=list)
    error: RunError | None = None
    # The store changes attempts and what follows within the stored JSON: no field from here on may hold anything that a
    # caller or a judge wrote, and the order stays.
    attempts: int = 0
    history: list[Attempt] = Field(default_factory=list)
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    deadline_at: datetime | None = None
    expires_at: datetime

    def with_attempt_ended(self, at: datetime) -> Self:
        """Return the run with its open attempt, if there is one, ended as the run itself has."""
        if not self.history or self.history[-1].outcome is not None:
            return self
        outcome = AttemptOutcome(self.status.value)
        last = self.history[-1].model_copy(update={"ended_at": at, "outcome": outcome})
        return self.model_copy(update={"history": [*self.history[:-1], last]})


class RunEvent(Model):
    """What `/events` streams: a step as it ends, then the run."""

    id: str
    event: Literal["step", "run"]
    data: str
