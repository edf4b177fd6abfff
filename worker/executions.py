"""The jobs that one worker has in hand."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass

import redis

from app.domain.errors import ErrorCode
from worker.bookkeeping import Ending, Outcome, Taken
from worker.jobs import slot
from worker.outcome import Verdict, run_job


class _Slot:
    """The place of one execution; lent while any part of it waits for a judge."""

    def __init__(self, on_lent: Callable[[], None]) -> None:
        self._on_lent = on_lent
        self._waiting = 0

    @property
    def is_lent(self) -> bool:
        return self._waiting > 0

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let another execution have the place for the block; to come back it waits for nobody."""
        self._waiting += 1
        self._on_lent()
        try:
            yield
        finally:
            self._waiting -= 1


@dataclass(slots=True)
class _Execution:
    taken: Taken
    task: asyncio.Task[Verdict]
    slot: _Slot
    started: float
    is_stopped: bool = False


class Executions:
    """Executions from the moment they began until their end is recorded, each a task of its own.

    `put` is told of every end, once; `forget` takes ends back when they are recorded and then calls `on_free`, as a
    slot does that is lent.
    """

    def __init__(self, connection: redis.Redis, *, put: Callable[[Ending], None], on_free: Callable[[], None]) -> None:
        self._connection = connection
        self._put = put
        self._on_free = on_free
        self._executions: dict[str, _Execution] = {}
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._is_draining = False

    def __len__(self) -> int:
        return len(self._executions)

    @property
    def taken(self) -> list[Taken]:
        """What is in hand, for the leases to be renewed."""
        return [execution.taken for execution in self._executions.values()]

    @property
    def lent(self) -> int:
        """How many only wait for their judge, and have lent their places."""
        return sum(execution.slot.is_lent for execution in self._executions.values())

    def start(self, taken: Taken) -> None:
        """Execute a job that was taken."""
        place, context = _Slot(self._on_lent), copy_context()
        context.run(slot.set, place)
        task = asyncio.create_task(run_job(taken, self._connection), name=taken.job_id, context=context)
        execution = _Execution(taken, task, place, time.perf_counter())
        self._executions[taken.execution_id] = execution
        self._is_idle.clear()
        # A task that is cancelled before its first step never runs: only a callback sees every end.
        task.add_done_callback(lambda _: self._put(_ending(execution)))

    def stop(self, *, job_id: str | None = None, execution_id: str | None = None) -> None:
        """End a job or an execution for good, as RQ's commands ask for; unknown ones are no matter."""
        for execution in self._executions.values():
            if job_id == execution.taken.job_id or execution_id == execution.taken.execution_id:
                execution.is_stopped = True
                execution.task.cancel()

    def drain(self) -> None:
        """End what only waits for its judge, now and from now on, for another worker to wait for it."""
        self._is_draining = True
        self._give_back_lent()

    def _on_lent(self) -> None:
        if self._is_draining:
            self._give_back_lent()
        self._on_free()

    def _give_back_lent(self) -> None:
        for execution in self._executions.values():
            # Once only: it may be giving its run back already.
            if execution.slot.is_lent and not execution.task.cancelling():
                execution.task.cancel()

    def give_back(self) -> None:
        """End whatever still runs, for another worker to begin anew."""
        for execution in self._executions.values():
            execution.task.cancel()

    def forget(self, endings: Sequence[Ending]) -> None:
        """Let go of what is recorded."""
        for ending in endings:
            del self._executions[ending.taken.execution_id]
        if not self._executions:
            self._is_idle.set()
        self._on_free()

    async def wait_until_idle(self) -> None:
        """Wait until every end is recorded."""
        await self._is_idle.wait()


def _ending(execution: _Execution) -> Ending:
    seconds = time.perf_counter() - execution.started
    if not execution.task.cancelled():
        # Whatever it is, the place must become free and RQ must be told.
        broke = execution.task.exception() is not None
        verdict = Verdict(Outcome.FAILED, ErrorCode.INTERNAL) if broke else execution.task.result()
    elif execution.is_stopped:
        verdict = Verdict(Outcome.STOPPED, "stopped")
    else:
        verdict = Verdict(Outcome.RETURNED)
    return Ending(execution.taken, verdict.outcome, verdict.code, seconds)
