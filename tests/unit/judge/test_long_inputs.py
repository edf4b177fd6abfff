"""Inputs that are judged themselves, sources and prompts, and are longer than a judge's context."""

from typing import Any

import pytest

from app.domain.errors import ErrorCode
from app.domain.request import Strategy
from app.domain.run import RunStatus
from app.ports import Prompt
from tests.unit.fakes import Obedient, Reply, ScriptedModel
from tests.unit.judge.runs import Bench

FILLERS = [f"{number}{'字' * 100}。" for number in range(40)]
SOURCE = "\n".join([*FILLERS[:20], "It has seven bells.", *FILLERS[20:]])
OFF = {"includeReason": False}


def knows_bells(prompt: Prompt) -> Reply:
    """Says the first label where the evidence above the units tells of the bells, else one that denies it."""
    has_it = "seven bells" in prompt.user.partition("[1]")[0]
    denied = ("unsure", "no")
    return Obedient(
        lambda _, labels: "taken" if "taken" in labels else labels[0] if has_it else next(filter(labels.count, denied))
    )(prompt)


def asked(bench: Bench, name: str) -> list[str]:
    return [prompt.user for prompt in bench.model.prompts if prompt.name == name]


@pytest.mark.anyio
@pytest.mark.parametrize("strategy", list(Strategy))
async def test_a_source_that_does_not_fit_is_compared_page_by_page(strategy: Strategy) -> None:
    bench = Bench(ScriptedModel(knows_bells, context_tokens=2_600))
    options = {**OFF, "strategy": strategy.value, "maxQuestions": 3}
    run = await bench.score("It has seven bells.", "summarization", input=SOURCE, options=options)
    assert run.analyze_step_result is not None
    assert (run.status, run.analyze_step_result["alignment"]) == (RunStatus.COMPLETED, 1.0)
    compared = [prompt.user for prompt in bench.model.prompts if "\nS: " in prompt.user]
    assert len(compared) > 2
    assert sum("seven bells" in user.partition("[1]")[0] for user in compared) in {1, 2}


@pytest.mark.anyio
@pytest.mark.parametrize(("most", "read"), [(1, 4), (3, 12), (10, 40), (11, 41)])
async def test_a_long_source_is_read_in_so_many_places_only(most: int, read: int) -> None:
    bench = Bench(ScriptedModel(knows_bells))
    options: dict[str, Any] = {**OFF, "maxQuestions": most}
    run = await bench.score("It has seven bells.", "summarization", input=SOURCE, options=options)
    assert run.analyze_step_result is not None
    assert run.preprocess_step_result is not None
    assert sum(line.startswith("[") for user in asked(bench, "questions") for line in user.splitlines()) == read
    assert len(run.preprocess_step_result["questions"]) == len(run.analyze_step_result["questions"]) == most
    again = Bench(ScriptedModel(knows_bells))
    assert (await again.score("It has seven bells.", "summarization", input=SOURCE, options=options)).model_dump(
        include={"preprocess_step_result"}
    ) == run.model_dump(include={"preprocess_step_result"})


@pytest.mark.anyio
async def test_a_question_that_any_page_of_a_summary_answers_is_answered() -> None:
    bench = Bench(ScriptedModel(knows_bells, context_tokens=2_600))
    run = await bench.score(SOURCE, "summarization", input="It has bells.", options=OFF)
    assert run.analyze_step_result is not None
    assert run.analyze_step_result["coverage"] == 1.0
    assert sum("\nA: " in user for user in asked(bench, "summarization_analyze")) > 1


@pytest.mark.anyio
async def test_a_long_prompt_is_read_in_windows_and_an_output_that_does_not_fit_is_an_overflow() -> None:
    bench = Bench(ScriptedModel(Obedient(lambda _, labels: labels[0])))
    prompt = "\n".join(f"Name floor {number}." for number in range(60))
    run = await bench.score(
        "One. Two.", "prompt-alignment", input=prompt, options={**OFF, "strategy": Strategy.SINGLE_CALL.value}
    )
    assert (run.status, run.score) == (RunStatus.COMPLETED, 1.0)
    assert run.coverage is not None
    assert run.coverage.judged == 64

    bench = Bench(ScriptedModel(knows_bells, context_tokens=2_600))
    run = await bench.score(SOURCE, "prompt-alignment", input="Name the bells.")
    assert run.error is not None
    assert (run.status, run.error.code) == (RunStatus.FAILED, ErrorCode.CONTEXT_OVERFLOW)


@pytest.mark.anyio
async def test_a_prompt_that_asks_for_nothing_and_texts_without_facts_have_no_score() -> None:
    def nothing(_: str, labels: list[str]) -> str:
        return "left" if "left" in labels else labels[-1]

    bench = Bench(ScriptedModel(Obedient(nothing)))
    run = await bench.score("You are welcome!", "prompt-alignment", input="Thanks!")
    assert (run.status, run.score) == (RunStatus.NOT_SCORABLE, None)
    assert run.reason == "The input asks for nothing that an answer could follow."
    assert run.usage.judge_calls == 2

    bench = Bench(ScriptedModel(Obedient(nothing)))
    run = await bench.score("Hm.", "summarization", input="Well.")
    assert (run.status, run.score, run.usage.judge_calls) == (RunStatus.NOT_SCORABLE, None, 2)
