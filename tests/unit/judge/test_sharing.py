"""What the runs of one request share: claims, asked for once, and segments, cut once."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from app.domain.request import CacheMode
from app.domain.run import Run
from app.judge.segment import Segment, _segments, segments_of
from app.ports import Completion, Prompt
from tests.unit.fakes import FlyingCache, Obedient, Reply, ScriptedModel
from tests.unit.judge.runs import Bench

REQUEST: dict[str, Any] = {
    "output": "The tower has four floors; it is green. Foxes sing.",
    "input": "The tower is green. Its keeper lives alone.",
    "context": ["The tower has five floors.", "Foxes bark."],
}
TOGETHER = ("faithfulness", "hallucination", "summarization")


class PatientModel(ScriptedModel):
    """Answers a call only when `together` of them wait."""

    def __init__(self, together: int) -> None:
        super().__init__(agreeing)
        self.barrier = asyncio.Barrier(together)

    async def complete(self, prompt: Prompt, *, deadline: float, slot: object = None) -> Completion:
        async with asyncio.timeout(10):
            await self.barrier.wait()
        return await super().complete(prompt, deadline=deadline, slot=slot)


def agreeing(prompt: Prompt) -> Reply:
    return Obedient(lambda _, labels: "taken" if "taken" in labels else labels[0])(prompt)


async def judged(bench: Bench, *scorers: str, **request: Any) -> list[Run]:
    return await asyncio.gather(*(bench.score(scorer=scorer, **REQUEST | request) for scorer in scorers))


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are cut."""
    seen: list[str] = []

    def cut(text: str) -> Iterator[Segment]:
        seen.append(text)
        return _segments(text)

    monkeypatch.setattr("app.judge.segment._segments", cut)
    return seen


@pytest.mark.anyio
@pytest.mark.parametrize("cache", list(CacheMode))
async def test_three_scorers_ask_for_claims_once_and_judge_the_same_as_apart(cache: CacheMode) -> None:
    apart = [Bench(ScriptedModel(agreeing), cache=FlyingCache()) for _ in TOGETHER]
    alone = [run for bench, scorer in zip(apart, TOGETHER, strict=True) for run in await judged(bench, scorer)]
    bench = Bench(ScriptedModel(agreeing), cache=FlyingCache())
    shared = await judged(bench, *TOGETHER, cache=cache, group="request-1")
    for one, other in zip(alone, shared, strict=True):
        assert (one.score, one.analyze_step_result) == (other.score, other.analyze_step_result)
    calls = [prompt.name for prompt in bench.model.prompts]
    assert (calls.count("claims"), len(calls)) == (1, sum(len(bench.model.prompts) for bench in apart) - 2)
    saved = [sum(run.usage.input_tokens + run.usage.output_tokens for run in runs) for runs in (alone, shared)]
    assert saved[0] - saved[1] == 2 * 15
    assert sum(run.usage.cache_hits for run in shared) == 2


@pytest.mark.anyio
async def test_texts_are_cut_once_for_all_scorers(cuts: list[str]) -> None:
    texts = {"output": "One bell rang.", "input": "One bell rang, not two.", "context": ["Two bells.", "They rang."]}
    held = [segments_of(text) for text in ("One bell rang.", "One bell rang, not two.", "Two bells.", "They rang.")]
    await judged(Bench(ScriptedModel(agreeing), cache=FlyingCache()), *TOGETHER, **texts, group="request-1")
    assert len(cuts) == len(held)


@pytest.mark.anyio
async def test_scorers_wait_for_the_judge_side_by_side() -> None:
    """Claims and questions first; then the claims of three scorers and the questions of one."""
    options = {"includeReason": False}
    bench = Bench(PatientModel(2), cache=FlyingCache())
    await judged(bench, "answer-relevancy", "toxicity", options=options)
    assert len(bench.model.prompts) == 2

    bench = Bench(PatientModel(2), cache=FlyingCache())
    await judged(bench, *TOGETHER, options=options, group="request-1")
    assert len(bench.model.prompts) == 6
