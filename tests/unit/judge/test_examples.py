"""Worked examples in prompts: when they stand there, where, and that they are right."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.domain.request import ExampleSet, Strategy
from app.judge.scorer import Scorer
from app.judge.task import assessment_task
from tests.unit.fakes import Obedient, ScriptedModel
from tests.unit.judge.runs import SCORERS, Bench

TAUGHT = {name: scorer for name, scorer in SCORERS.items() if ExampleSet.DEFAULT in scorer.example_sets}
MARK = "An example, with another text:"


async def prompts(scorer_id: str = "bias", **options: Any) -> list[tuple[str, bool]]:
    """The names of the prompts of a run, and which of them have examples."""
    model = ScriptedModel(Obedient(lambda _, labels: "yes" if "yes" in labels else labels[-1]))
    await Bench(model).score("Tea is best.", scorer_id, input="Why?", context=["Tea."], options=options)
    return [(prompt.name, MARK in prompt.system) for prompt in model.prompts]


@pytest.mark.anyio
async def test_labels_are_taught_by_examples_unless_they_are_declined() -> None:
    assert await prompts(strategy="labels") == [("bias_label", True)]
    assert await prompts(strategy="labels", examples="default") == [("bias_label", True)]
    assert await prompts(strategy="labels", examples="none") == [("bias_label", False)]


@pytest.mark.anyio
async def test_verdicts_with_reasons_are_taught_on_demand() -> None:
    plain = [("bias_preprocess", False), ("bias_analyze", False), ("bias_reason", False)]
    assert await prompts() == plain
    assert await prompts(examples="default") == [plain[0], ("bias_analyze", True), plain[2]]


@pytest.mark.anyio
async def test_scorers_without_examples_do_without() -> None:
    assert SCORERS["context-precision"].example_sets == (ExampleSet.NONE,)
    assert await prompts("context-precision", strategy="labels") == [("context-precision_label", False)]


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("scorer", TAUGHT.values(), ids=TAUGHT)
def test_examples_are_good_answers(scorer: Scorer, strategy: Strategy) -> None:
    (inquiry,) = scorer.inquiries
    assessment = inquiry.assessments[strategy]
    cited = (1, 2) if assessment.cites else ()
    task = assessment_task(scorer, assessment, cited, examples=True)
    plain = assessment_task(scorer, assessment, cited)
    worked = task.system.removeprefix(plain.system)
    assert worked.startswith(f"\n\n{MARK}\n")
    *lines, answer = worked.splitlines()
    numbers = [int(line[1 : line.index("]")]) for line in lines if line.startswith("[")]
    assert numbers == list(range(1, len(numbers) + 1))
    reply = json.loads(answer.removeprefix("Its answer: "))
    Draft202012Validator(task.schema(numbers)).validate(reply)
    answers = task.read(reply[task.key], numbers)
    assert sorted(answers) == numbers
    assert len({answer.labels[assessment.first.field] for answer in answers.values()}) > 1
