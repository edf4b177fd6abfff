"""What run semantics need from outside, in one immutable bundle."""

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

from app.ports import AnswerCache, ChatModels, Clock, Notifier, RunQueue, RunStore, Telemetry
from app.runs.catalog import Catalog
from app.runs.steadiness import Steadiness
from app.runs.turns import Turns

COMPUTING_THREADS = 2


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """The numbers an operator sets: seconds, unless the name says otherwise."""

    run_ttl_s: int
    run_timeout_ms: int
    inline_wait_s: float
    lease_s: float
    finish_patience_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Deps:
    """Built once a process by `build_deps`; shared by every request and job."""

    scorers: Catalog
    models: ChatModels
    cache: AnswerCache
    store: RunStore
    queue: RunQueue
    notifier: Notifier
    clock: Clock
    telemetry: Telemetry
    policy: RunPolicy
    steadiness: Steadiness
    """Of this process; `keep_sweeping` tells it of the store."""
    suspects: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held for the one suspect that this process executes."""
    finishing: set[asyncio.Task[None]] = field(default_factory=set)
    """Runs that were judged while the store was away, still to be written."""
    computing: Executor = field(default_factory=lambda: ThreadPoolExecutor(COMPUTING_THREADS, "computing"))
    """Where long texts are scored without a judge; its few threads leave the loop its share of the processor."""
    accepting: Turns = field(default_factory=Turns)
    """Queued requests that are being stored: a flood of them must not hold up everything else."""
