"""Rows judged by the engine, through the same adapters as in the service."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from app.adapters.clock import SystemClock
from app.adapters.judge_models import load_models
from app.domain.request import CacheMode, RunRequest
from app.domain.run import Direction, Run, RunStatus, Step
from app.judge.execute import Judge, judge_run
from app.judge.scorer import Scorer
from app.observe.exposition import make_registry
from app.observe.metrics import PrometheusTelemetry
from app.ports import CachedAnswer, ChatModel, Source
from app.settings import Settings
from bench.labelled.records import Key, Record, RecordFile
from bench.labelled.rows import Row

FENCE_KEY = b"the same in every bench, for caches"
MOST_MISSES = 5


class JudgeAway(Exception):
    """The endpoint can't be asked; the message says what it did."""


class Attack(NamedTuple):
    """A text to be put behind the one that is judged."""

    id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Case:
    """One judgement to be made; `options` as a caller would send them."""

    row: Row
    scorer: Scorer
    options: dict[str, Any]
    attack: Attack | None = None

    @property
    def output(self) -> str:
        """The text to judge."""
        return self.row.output if self.attack is None else f"{self.row.output}\n\n{self.attack.text}"

    def key(self, model: str) -> Key:
        """What its record is found by."""
        options = json.dumps(self.options, sort_keys=True)
        attack = self.attack.id if self.attack else None
        return Key(model, self.scorer.id, self.scorer.version, options, self.row.id, attack)


class _NoCache:
    """Asks every time (implements ports.AnswerCache)."""

    async def answer(self, key: str, mode: CacheMode, ask: Callable[[], Awaitable[bytes]]) -> CachedAnswer:  # noqa: ARG002
        return CachedAnswer(await ask(), Source.LLM)

    async def forget(self, keys: list[str]) -> None:  # noqa: ARG002
        return None


class Bench:
    """A judge and what it needs around it; `async with` closes its connections."""

    def __init__(self, settings: Settings, scorers: Sequence[str], timeout_s: float) -> None:
        self.clock = SystemClock()
        self.telemetry = PrometheusTelemetry(make_registry(), scorers=tuple(scorers))
        self.models = load_models(settings, self.clock, self.telemetry)
        self.timeout_s = timeout_s

    async def __aenter__(self) -> "Bench":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.models.aclose()

    @property
    def model(self) -> ChatModel:
        """The judge."""
        return self.models.get(self.models.default or "")

    async def judged(self, case: Case) -> Record:
        """Return the record of a case; a judge that fails makes a record too."""
        now = self.clock.now()
        run = Run(
            run_id=uuid.uuid4().hex,
            scorer_id=case.scorer.id,
            scorer_version=case.scorer.version,
            status=RunStatus.RUNNING,
            direction=case.scorer.direction,
            created_at=now,
            expires_at=now + timedelta(days=1),
        )
        judge = Judge(self.model, _NoCache(), "bench", FENCE_KEY, self.clock, self.telemetry)
        started = self.clock.monotonic()
        ended = await judge_run(
            run,
            self._request(case),
            case.scorer,
            judge,
            deadline=started + self.timeout_s,
            on_step=_on_step,
            cache_keys=[],
        )
        return self._record(case, ended, self.clock.monotonic() - started)

    def _request(self, case: Case) -> RunRequest:
        row = case.row
        return RunRequest(
            scorer_id=case.scorer.id,
            output=case.output,
            input=row.input,
            context=list(row.context) if row.context else None,
            ground_truth=row.ground_truth,
            options=case.scorer.options.model_validate(case.options).model_dump(),
            model=self.model.id,
            cache=CacheMode.OFF,
            timeout_ms=int(self.timeout_s * 1000),
        )

    def _record(self, case: Case, run: Run, seconds: float) -> Record:
        row, key = case.row, case.key(self.model.id)
        error = run.error
        return Record(
            model=key.model,
            scorer=key.scorer,
            scorer_version=key.scorer_version,
            options=key.options,
            file=row.file,
            row=row.id,
            group=row.group,
            category=row.category,
            lang=row.lang,
            label=row.label,
            status=run.status.value,
            score=run.score,
            higher_is_better=run.direction is Direction.HIGHER_IS_BETTER,
            error=None if error is None else ":".join(filter(None, (error.code.value, error.reason))),
            judge_calls=run.usage.judge_calls,
            input_tokens=run.usage.input_tokens,
            output_tokens=run.usage.output_tokens,
            seconds=round(seconds, 3),
            warnings=",".join(dict.fromkeys(warning.code for warning in run.warnings)),
            attack=case.attack.id if case.attack else None,
            attack_kind=case.attack.kind if case.attack else None,
        )


async def _on_step(run: Run, step: Step) -> None:
    return None


async def judge_all(
    bench: Bench, cases: Sequence[Case], file: RecordFile, concurrency: int, on_record: Callable[[Record], None]
) -> None:
    """Judge the cases that have no record yet, so many at once, and keep each record as it comes.

    Raises JudgeAway when several in a row could not be judged for a reason that lies with the endpoint.
    """
    left = iter([case for case in cases if not file.has(case.key(bench.model.id))])
    misses: list[str] = []

    async def work() -> None:
        for case in left:
            record = await bench.judged(case)
            file.add(record)
            on_record(record)
            if record.is_final:
                misses.clear()
            else:
                misses.append(record.error or "")
            if len(misses) >= MOST_MISSES:
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    if len(misses) >= MOST_MISSES:
        raise JudgeAway(f"{bench.model.id} could not be asked {MOST_MISSES} times in a row ({misses[-1]})")
