import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.computed.execute import SHORT, compute_run
from app.computed.scorer import ComputedScorer
from app.domain.request import RunRequest
from app.domain.run import Coverage, Direction, Run, RunStatus, Step
from app.scorers import load_scorers
from tests.unit.fakes import NOW, FakeClock, TelemetryLog

pytestmark = pytest.mark.anyio


class Desk:
    """Surroundings of a computed run; `steps` is what on_step was told."""

    def __init__(self) -> None:
        self.telemetry = TelemetryLog()
        self.steps: list[tuple[Step, Run]] = []
        self.threads: list[str] = []

    async def score(self, scorer_id: str, output: str, *, threshold: float | None = None, **fields: Any) -> Run:
        scorer = load_scorers()[scorer_id]
        assert isinstance(scorer, ComputedScorer)
        run = Run(
            run_id="run-00000001",
            scorer_id=scorer_id,
            scorer_version="1",
            status=RunStatus.RUNNING,
            direction=Direction.HIGHER_IS_BETTER,
            reason="of an attempt before",
            created_at=NOW,
            expires_at=NOW,
        )
        options = scorer.options.model_validate(fields.pop("options", {})).model_dump(mode="json", by_alias=True)
        request = RunRequest(
            scorer_id=scorer_id, output=output, options=options, threshold=threshold, timeout_ms=1_000, **fields
        )
        with ThreadPoolExecutor(1, "computing") as pool:
            return await compute_run(
                run, request, scorer, clock=FakeClock(), telemetry=self.telemetry, pool=pool, on_step=self.on_step
            )

    async def on_step(self, run: Run, step: Step) -> None:
        self.steps.append((step, run))


async def test_a_run_without_a_judge() -> None:
    desk = Desk()
    run = await desk.score(
        "keyword-coverage", "Green tea", options={"keywords": ["tea", "milk"], "scale": 10}, threshold=6
    )
    assert (run.status, run.score, run.passed, run.interpretation) == (
        RunStatus.COMPLETED,
        5.0,
        False,
        "partly covered",
    )
    assert run.reason == "Keywords found in the text: 1 of 2."
    assert run.coverage == Coverage(asked=2, judged=2)
    assert run.model is None
    assert run.usage.judge_calls == 0
    assert (run.preprocess_step_result, run.preprocess_prompt, run.analyze_prompt) == (None, None, None)
    assert run.analyze_step_result == {"terms": 2, "found": 1, "matched": ["tea"], "missing": ["milk"]}
    assert run.timings.analyze_ms == 0.0
    assert [(step, told.status, told.score) for step, told in desk.steps] == [(Step.ANALYZE, RunStatus.RUNNING, 5.0)]
    assert desk.telemetry.of("step_finished") == [("keyword-coverage", Step.ANALYZE, "computed", 0.0)]


async def test_without_a_reason() -> None:
    run = await Desk().score("checks", "x", options={"includes": ["x"], "includeReason": False})
    assert (run.score, run.reason) == (1.0, None)


async def test_nothing_to_score_is_told_in_the_language_asked_for() -> None:
    run = await Desk().score("keyword-coverage", "x", input="What is it?", options={"language": "fr"}, threshold=0.5)
    assert (run.status, run.score, run.passed, run.interpretation) == (RunStatus.NOT_SCORABLE, None, None, None)
    assert run.reason == "L’entrée n’a pas de mots-clés."


@pytest.mark.parametrize(("length", "where"), [(SHORT // 2, "MainThread"), (SHORT * 2, "computing")])
async def test_long_texts_leave_the_loop_alone(length: int, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = threading.current_thread
    monkeypatch.setattr(
        "app.scorers.content_similarity.folded", lambda text: seen.append(real().name) or text, raising=True
    )
    await Desk().score("content-similarity", "of " * (length // 3), ground_truth="a")
    assert seen
    assert all(name.startswith(where) for name in seen)


async def test_inputs_may_be_messages() -> None:
    run = await Desk().score(
        "completeness",
        [{"role": "assistant", "content": "Tea."}],  # type: ignore[arg-type]
        input=[{"role": "user", "content": "Tea or milk?"}],
    )
    assert run.score == 0.5
