"""What the core needs from outside, each as a Protocol; `app/wiring.py` chooses who serves it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from app.domain.request import CacheMode, Priority, RunRequest
from app.domain.run import Run, RunEvent, RunStatus

# --- the judge model -------------------------------------------------------------------------------------------------


class FinishReason(StrEnum):
    """Why the model stopped, whatever the provider calls it."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one judge call sends; `schema` is the JSON schema that its reply must satisfy.

    `logprobs`: how many of the likeliest tokens are wanted for every token of the reply (0: none).
    `sample` 0 asks for the judge's one answer. Numbers from 1 on ask for samples of what it may answer, each the same
    whenever it is asked for again as far as the provider can do that.
    """

    system: str
    user: str
    schema: dict[str, Any]
    name: str
    max_tokens: int
    logprobs: int = 0
    sample: int = 0

    @property
    def text(self) -> str:
        """The prompt as it is shown to people."""
        return f"{self.system}\n\n{self.user}"


class Token(NamedTuple):
    """A token of a reply in UTF-8 and its probability (0..1), and the likeliest ones in its place, itself among them.

    A token may be a part of a character.
    """

    text: bytes
    probability: float
    likeliest: tuple[tuple[bytes, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back: `text` without reasoning channels, tokens as the provider counted them (0 when it did not).

    `model` is the `provider/name` that answered. `tokens` are what the text was written in, and perhaps reasoning
    around it; None where the provider did not tell their probabilities.
    """

    text: str
    finish: FinishReason
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    tokens: tuple[Token, ...] | None = None


class Slot(Protocol):
    """A queued run's place among those that its worker executes at once."""

    def lent(self) -> AbstractContextManager[None]:
        """Let another run have the place while the block waits for a judge that is away or limits its calls."""
        ...


class ChatModel(Protocol):
    """One judge model."""

    @property
    def id(self) -> str:
        """`provider/name`, as callers name it."""
        ...

    @property
    def context_tokens(self) -> int:
        """Prompt and reply together must fit this."""
        ...

    @property
    def max_output_tokens(self) -> int:
        """The most that one reply may take."""
        ...

    @property
    def identity(self) -> str:
        """What makes two judges differ (provider, base URL, model, parameters), for cache keys; no secrets."""
        ...

    async def complete(self, prompt: Prompt, *, deadline: float, slot: Slot | None = None) -> Completion:
        """Ask the model, retries included; `deadline` is on the monotonic scale of the Clock.

        With a slot (queued runs) a judge that is away is waited for until the deadline; without one (a caller waits)
        it is given up after a few retries.

        Raises JudgeTimeout, JudgeUnavailable, ContextOverflow (the provider said so), NotConfigured (401, 403, 404,
        400: the detail says what to set). A refusal or an empty or cut reply is a Completion, not an error.
        """
        ...


class ChatModels(Protocol):
    """The configured judge models."""

    @property
    def default(self) -> str | None:
        """The id used when a request names none; None when no judge is configured."""
        ...

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids that a request may name."""
        ...

    def get(self, model_id: str) -> ChatModel:
        """Return the judge with that id; raises KeyError."""
        ...


# --- the prompt/response cache ---------------------------------------------------------------------------------------


class Source(StrEnum):
    """Where a step's answer came from."""

    LLM = "llm"
    CACHE = "cache"
    COALESCED = "coalesced"


class CachedAnswer(NamedTuple):
    """A validated reply and where it came from."""

    value: bytes
    source: Source


class AnswerCache(Protocol):
    """Validated replies by key. An outage is counted and otherwise unseen: `ask` is then simply awaited."""

    async def answer(self, key: str, mode: CacheMode, ask: Callable[[], Awaitable[bytes]]) -> CachedAnswer:
        """Return the reply stored under key, or ask for it once, whoever else (any process) wants it now.

        `ask` returns bytes only when they are worth storing; what it raises is raised here and stored nowhere.
        REFRESH always asks and overwrites. OFF always asks and neither reads nor writes.
        A waiting caller whose leader fails in this process with what would fail all who ask (a JudgeError not of its
        own deadline, ContextOverflow, NotConfigured) gets the same error; otherwise a waiter takes over.
        """
        ...

    async def forget(self, keys: list[str]) -> None:
        """Delete these replies (for DELETE of a run)."""
        ...


# --- runs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunKey:
    """Which run, of which tenant."""

    tenant: str
    run_id: str


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be stored: `fingerprint` is a digest of the caller's body, by which a repeat is told from a conflict."""

    key: RunKey
    run: Run
    request: RunRequest
    fingerprint: str
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the store has it; `body` is the JSON of the Run."""

    body: bytes
    status: RunStatus
    fingerprint: str


class Created(NamedTuple):
    """Whether this call stored the run, and the run that stands under its id now."""

    new: bool
    stored: StoredRun


@dataclass(frozen=True, slots=True)
class Claim:
    """A right to execute a run until the lease ends; `token` fences out every earlier claim.

    `losses` counts the claims of this run whose lease ended, `taken_over` is whether the one before did.
    """

    key: RunKey
    token: int
    run: Run
    request: RunRequest
    losses: int = 0
    taken_over: bool = False


class RunSuspected(Exception):
    """The run was lost so often that it is to be claimed alone: it may be what its processes died of."""


class Due(NamedTuple):
    """A run that has not ended, and of which nobody has told anything for a while."""

    key: RunKey
    deadline_at: datetime | None


class StepEnd(NamedTuple):
    """A step that ended, by name, and the run as it was then."""

    event: str
    run: Run


class ListQuery(NamedTuple):
    """Filters of `GET /v1/runs`; `cursor` is opaque, from an earlier page."""

    tenant: str
    scorer_id: str | None = None
    status: RunStatus | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    limit: int = 20
    cursor: str | None = None


class Page(NamedTuple):
    """JSON bodies of runs, newest first, and the cursor of the next page (None at the end)."""

    bodies: list[bytes]
    next_cursor: str | None


class RunStore(Protocol):
    """The truth about runs. Every method raises StoreUnavailable when its server does not answer in time.

    Allowed arrows, guarded in the store: (none) -> queued | running; queued -> running | cancelled | expired;
    running -> queued (released) | any end state; failed | expired | cancelled -> queued (retried).
    """

    async def create(self, new: NewRun, *, claim_lease_s: float | None = None) -> tuple[Created, Claim | None]:
        """Store a run unless its id exists; with a lease, store it as running and claimed by this caller at once."""
        ...

    async def get(self, key: RunKey) -> StoredRun | None:
        """Return the run, or None."""
        ...

    async def get_request(self, key: RunKey) -> RunRequest | None:
        """Return what the run was asked to do, or None when it is not kept."""
        ...

    async def claim(self, key: RunKey, lease_s: float, *, alone: bool = False, take_over: bool = True) -> Claim | None:
        """Begin an attempt at a queued run, or with take_over at a running one whose lease ended; None without one.

        Raises RunSuspected for a suspect that is not claimed `alone`. What was lost MAX_LOSSES times is claimed without
        an attempt, for its end to be written.
        """
        ...

    async def renew(self, claim: Claim, lease_s: float) -> bool:
        """Extend the lease; False when the claim is no longer valid (cancelled, taken over, deleted)."""
        ...

    async def checkpoint(self, claim: Claim, run: Run, event: str | None, cache_keys: Sequence[str] = ()) -> bool:
        """Keep a running run as it is now, and more keys it may have cached answers under; False as for renew.

        With `event`, the name of the step that ended, listeners are told and the event is kept.
        """
        ...

    async def finish(
        self, claim: Claim, run: Run, *, cache_keys: Sequence[str], keep_request: bool, last_step: StepEnd | None = None
    ) -> bool:
        """Write the end state, once; False when the claim is no longer valid and nothing was written.

        `last_step` is a step that ended just before and was not written by checkpoint.
        """
        ...

    async def release(self, claim: Claim, cache_keys: Sequence[str] = ()) -> bool:
        """Give a running run back as queued, its partial results kept."""
        ...

    async def cancel(self, key: RunKey, now: datetime) -> StoredRun | None:
        """End a queued or running run as cancelled; returns the run as it stands then, None when unknown."""
        ...

    async def requeue(self, key: RunKey, run: Run) -> bool:
        """Replace an ended run by `run` (queued, no losses); False when it is not ended or not there."""
        ...

    async def delete(self, key: RunKey) -> list[str] | None:
        """Remove every trace; returns the cache keys the run wrote, None when it was unknown."""
        ...

    async def withdraw(self, key: RunKey) -> bool:
        """Remove a run that its caller is told was not accepted; False when its request was repeated meanwhile."""
        ...

    async def due(self, limit: int, pause_s: float) -> list[Due]:
        """Return runs that have not ended and that nobody has shown to be in hand, and put them off for pause_s."""
        ...

    async def may_sweep(self, every_s: float) -> bool:
        """Return True to one process of all, once in every_s seconds."""
        ...

    async def list_page(self, query: ListQuery) -> Page:
        """Return a page of runs; raises InvalidRequest for a cursor that is not ours."""
        ...

    async def events(self, key: RunKey, after: str | None) -> list[RunEvent]:
        """Return the run's events after that id (all when None), oldest first."""
        ...

    async def remember(
        self, tenant: str, idempotency_key: str, fingerprint: str, run_ids: tuple[str, ...]
    ) -> "Remembered":
        """Tie an Idempotency-Key to these run ids, or return what it is tied to already."""
        ...

    async def recall(self, tenant: str, idempotency_key: str) -> "Remembered | None":
        """Return what an Idempotency-Key is tied to, or None."""
        ...

    async def fence_key(self) -> bytes:
        """Return the secret that fences are made with: 32 random bytes, made once and shared by all processes."""
        ...

    async def ping(self) -> None:
        """Raise StoreUnavailable unless the server takes a write within a second."""
        ...


class Remembered(NamedTuple):
    """What an Idempotency-Key stands for."""

    fingerprint: str
    run_ids: tuple[str, ...]


class Notifier(Protocol):
    """Wakes those who wait for a run, in any process. A wake-up is a hint: look at the store after it."""

    def watch(self, key: RunKey, *, steps: bool = False) -> AbstractAsyncContextManager["Watch"]:
        """Register interest in a run's status, or in its steps too.

        Enter before reading the store, so that no change is missed.
        """
        ...


class Watch(Protocol):
    """One listener's interest in one run."""

    async def changed(self, timeout_s: float) -> bool:
        """Wait for the next change (claim, end, cancel, delete; step); False when the time is over first."""
        ...


class QueueDepth(NamedTuple):
    """Jobs waiting by priority, and how long the oldest has waited (seconds, 0 when none)."""

    by_priority: dict[Priority, int]
    oldest_s: float


class RunQueue(Protocol):
    """Carries run ids to workers; the run itself stays in the store."""

    async def check_room(self) -> None:
        """Raise CapacityReduced when the queue is full; asked before a run is accepted."""
        ...

    async def enqueue(
        self, key: RunKey, priority: Priority, timeout_s: float, *, caller: str = "", if_room: bool = False
    ) -> None:
        """Put a run in line; raises StoreUnavailable.

        For an accepted run there is always room; with `if_room`, raises CapacityReduced when the queue is full.

        A run that waits already keeps its place. Runs of one priority are taken from its callers in turn.
        """
        ...

    async def remove(self, key: RunKey) -> None:
        """Take a run out of line and delete every trace of its job."""
        ...

    async def missing(self, keys: Sequence[RunKey]) -> list[RunKey]:
        """Return those of these runs that neither wait in line nor are being executed."""
        ...

    async def depth(self) -> QueueDepth:
        """Return what waits, without side effects."""
        ...

    async def workers(self) -> int:
        """Return how many workers are alive."""
        ...

    async def last_beat_s(self) -> float | None:
        """Return how many seconds ago a worker last showed that it lives; None when none is alive."""
        ...


# --- callers' own scorers --------------------------------------------------------------------------------------------

MAX_OWN_SCORERS = 100
"""Scorers that a tenant may have registered at once."""
MAX_VERSIONS = 1_000
"""Versions of one of them, while it is registered."""


class Registration(StrEnum):
    """What became of a registration: it is new, was there before, or was refused."""

    NEW = "new"
    SAME = "same"
    OTHER_BODY = "other_body"
    TOO_MANY_SCORERS = "too_many_scorers"
    TOO_MANY_VERSIONS = "too_many_versions"


class DefinitionStore(Protocol):
    """Tenants' own scorers, each as the JSON of its newest definition.

    Every method raises StoreUnavailable when its server does not answer in time.
    """

    async def add(self, tenant: str, scorer_id: str, version: str, definition: str) -> Registration:
        """Make this the scorer's newest definition, unless the version was registered before."""
        ...

    async def get(self, tenant: str, scorer_id: str) -> str | None:
        """Return the scorer's definition, or None."""
        ...

    async def all(self, tenant: str) -> list[str]:
        """Return the definitions of all scorers of the tenant, in the order of their ids."""
        ...

    async def remove(self, tenant: str, scorer_id: str) -> bool:
        """Forget a scorer and its versions; False when there was none."""
        ...


# --- time and telemetry ----------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Time, so that tests can hold it."""

    def now(self) -> datetime:
        """The wall clock, UTC and aware."""
        ...

    def monotonic(self) -> float:
        """Seconds on the event loop's scale."""
        ...


class Telemetry(Protocol):
    """Counts and durations; seconds throughout. Labels come from fixed sets only."""

    def run_started(self, scorer: str, mode: str) -> None: ...

    def run_finished(
        self, scorer: str, mode: str, status: str, seconds: float, score: float | None, *, attempts: int
    ) -> None:
        """Count a run's end; `score` is that of a scale of 1, `attempts` how often the run was begun."""
        ...

    def run_left(self, scorer: str, mode: str) -> None:
        """Note that a run's execution ended here without the run: it was given back, taken over or deleted."""
        ...

    def queue_waited(self, priority: str, seconds: float) -> None: ...

    def step_finished(self, scorer: str, step: str, source: str, seconds: float) -> None: ...

    def judge_called(
        self, model: str, outcome: str, seconds: float, input_tokens: int, output_tokens: int, cost_usd: float | None
    ) -> None: ...

    def judge_retried(self, model: str, cause: str) -> None: ...

    def judge_waited(self, model: str, cause: str, seconds: float) -> None:
        """Note a wait before a call: for a limit (`requests`, `tokens`, `in_flight`), `paused` or the `breaker`."""
        ...

    def breaker_changed(self, model: str, state: str) -> None:
        """Note that the breaker of a model is `closed`, `open` or `half_open` now."""
        ...

    def judge_fell_back(self, model: str, to: str) -> None:
        """Note that a call went to another model, since this one was not to be had."""
        ...

    def run_recovered(self, reason: str) -> None:
        """Note that a run which would have been lost goes on or is ended; `reason` is one of runs.recovery.Reason."""
        ...

    def reply_invalid(self, scorer: str, step: str, reason: str) -> None: ...

    def cache_used(self, result: str) -> None: ...
