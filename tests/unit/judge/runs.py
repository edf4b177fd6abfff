"""Runs for tests of the engine."""

from typing import Any

from app.domain.request import RunRequest
from app.domain.run import Direction, Run, RunStatus, Step
from app.judge.askers import Judge
from app.judge.execute import judge_run
from app.judge.scorer import Scorer
from app.scorers import load_scorers
from tests.unit.fakes import NOW, DictCache, FakeClock, ScriptedModel, TelemetryLog

SCORERS = {name: scorer for name, scorer in load_scorers().items() if isinstance(scorer, Scorer)}


def new_run(scorer_id: str = "bias", **fields: Any) -> Run:
    return Run(
        run_id="run-00000001",
        scorer_id=scorer_id,
        scorer_version="1",
        status=RunStatus.RUNNING,
        direction=Direction.LOWER_IS_BETTER,
        model="fake/judge",
        created_at=NOW,
        expires_at=NOW,
        **fields,
    )


def request_of(output: Any, scorer_id: str = "bias", **fields: Any) -> RunRequest:
    return RunRequest(
        scorer_id=scorer_id,
        output=output,
        options=fields.pop("options", {}),
        model="fake/judge",
        timeout_ms=60_000,
        **fields,
    )


class Bench:
    """One judge, or a panel, with its surroundings, for one or more runs."""

    def __init__(
        self, model: ScriptedModel, *panel: ScriptedModel, tenant: str = "tenant", cache: DictCache | None = None
    ) -> None:
        self.model = model
        self.cache = DictCache() if cache is None else cache
        self.telemetry = TelemetryLog()
        self.clock = FakeClock()
        self.judge = Judge(model, self.cache, tenant, b"k" * 32, self.clock, self.telemetry, panel=panel)
        self.steps: list[tuple[Step, Run]] = []
        self.cache_keys: list[str] = []

    async def score(
        self,
        output: Any,
        scorer: str | Scorer = "bias",
        *,
        run: Run | None = None,
        deadline: float = 2_000.0,
        **request: Any,
    ) -> Run:
        judged_by = SCORERS[scorer] if isinstance(scorer, str) else scorer
        asked = request_of(output, judged_by.id, **request)
        return await judge_run(
            run or new_run(judged_by.id),
            asked,
            judged_by,
            self.judge,
            deadline=deadline,
            on_step=self.on_step,
            cache_keys=self.cache_keys,
        )

    async def on_step(self, run: Run, step: Step) -> None:
        self.steps.append((step, run))
