"""Scorers that hold the output against its input: a prompt to follow, a source to sum up."""

import uuid
from typing import Any

import pytest

from tests.integration.service import Service

PROMPT = "Describe the tower briefly; name its colour. Mention foxes."
SOURCE = "The tower has 5 floors.\nIts walls are green. The keeper lives there alone. Foxes sing at night."
SUMMARY = "The tower has 4 floors; its walls are green. Visitors brought cakes."


def marked(body: str) -> str:
    """A text that no other test has cached; its mark is no claim."""
    return f"{body} Everybody should note {uuid.uuid4().hex}."


def judged(run: dict[str, Any], name: str, about: str) -> list[tuple[str, str]]:
    return [(one[about], one["verdict"]) for one in run["analyzeStepResult"][name]]


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_prompt_alignment(service: Service, mode: str) -> None:
    body = {
        "input": marked(PROMPT),
        "output": marked("The tower is tall. Mention of its colour is missing."),
        "mode": mode,
    }
    run = service.run(service.score("prompt-alignment", **body).json()["runId"])
    assert judged(run, "requirements", "requirement") == [
        ("Describe the tower briefly", "yes"),
        ("name its colour.", "yes"),
        ("Mention foxes.", "yes"),
    ]
    assert judged(run, "dimensions", "dimension") == [
        ("intent", "partial"),
        ("completeness", "partial"),
        ("tone", "partial"),
        ("format", "partial"),
    ]
    # 0.4 * 0.5 + 0.3 * 1 + 0.2 * 0.5 + 0.1 * 0.5
    assert (run["status"], run["score"], run["interpretation"]) == ("completed", 0.65, "mostly follows the prompt")
    spans = [one["inputSpan"] for one in run["preprocessStepResult"]["requirements"]]
    assert [PROMPT[span["start"] : span["end"]] for span in spans] == [PROMPT[:44]] * 2 + [PROMPT[45:]]
    assert run["coverage"] == {"asked": 7, "judged": 7}
    assert service.judge_calls() == 4


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_summarization(service: Service, mode: str) -> None:
    body = {"input": marked(SOURCE), "output": marked(SUMMARY), "mode": mode}
    run = service.run(service.score("summarization", **body).json()["runId"])
    assert judged(run, "verdicts", "claim") == [
        ("The tower has 4 floors", "no"),
        ("its walls are green.", "yes"),
        ("Visitors brought cakes.", "unsure"),
    ]
    assert judged(run, "questions", "question") == [
        ("The tower has 5 floors.", "yes"),
        ("Its walls are green.", "yes"),
        ("The keeper lives there alone.", "no"),
        ("Foxes sing at night.", "no"),
    ]
    result = run["analyzeStepResult"]
    assert (run["score"], result["alignment"], result["coverage"]) == (0.3333, 0.3333, 0.5)
    span = result["questions"][3]["inputSpan"]
    assert SOURCE[span["start"] : span["end"]] == "Foxes sing at night."
    assert run["coverage"] == {"asked": 7, "judged": 7}
    assert service.judge_calls() == 5


@pytest.mark.parametrize("strategy", ["single_call", "labels"])
def test_strategies_of_one_call_judge_segments_of_both_texts(service: Service, strategy: str) -> None:
    body = {
        "input": SOURCE,
        "output": marked(SUMMARY),
        "scorers": ["prompt-alignment", "summarization"],
        "options": {"strategy": strategy},
    }
    alignment, summary = service.client.post("/v1/runs", json=body).json()["runs"]
    assert [one["requirement"] for one in alignment["analyzeStepResult"]["requirements"]] == [
        "The tower has 5 floors.",
        "Its walls are green.",
        "The keeper lives there alone.",
        "Foxes sing at night.",
    ]
    assert judged(summary, "verdicts", "claim")[0] == ("The tower has 4 floors; its walls are green.", "no")
    assert judged(summary, "questions", "question")[1] == ("Its walls are green.", "yes")
    assert (alignment["score"], summary["score"]) == (0.5, 0.0)
    assert [run["reason"] is None for run in (alignment, summary)] == [strategy == "labels"] * 2
    assert service.judge_calls() == 4


def test_inputs_that_are_missing_are_named(service: Service) -> None:
    for scorer in ("prompt-alignment", "summarization"):
        for given in ({}, {"input": None}, {"input": " \n"}, {"input": [{"role": "user", "content": []}]}):
            reply = service.score(scorer, output=SUMMARY, **given)
            assert reply.status_code == 422
            assert [(error["pointer"], error["code"]) for error in reply.json()["errors"]] == [("#/input", "missing")]
    assert service.judge_calls() == 0


def test_questions_are_few_and_from_all_over_a_long_source(service: Service) -> None:
    source = "".join(f"Chapter {number} tells of the {'very ' * 30}tall tower.\n" for number in range(400))
    run = service.score(
        "summarization", input=source, output=marked("The tall tower tells."), options={"maxQuestions": 5}
    ).json()
    questions = [one["question"] for one in run["analyzeStepResult"]["questions"]]
    assert [question.split()[1] for question in questions] == ["50", "130", "210", "290", "370"]
    assert (run["status"], run["coverage"]["asked"]) == ("completed", 6)


@pytest.mark.parametrize("options", [{"maxQuestions": 0}, {"maxQuestions": 51}, {"questions": 3}])
def test_options_out_of_bounds_are_refused(service: Service, options: dict[str, int]) -> None:
    assert service.score("summarization", input=SOURCE, output=SUMMARY, options=options).status_code == 422


def test_quotations_of_both_texts_are_not_kept(service: Service) -> None:
    mark = uuid.uuid4().hex
    body = {
        "input": f"Name the tower {mark}.",
        "output": f"The tower is called {mark}.",
        "scorers": ["prompt-alignment", "summarization"],
        "store": "result",
    }
    answered = service.client.post("/v1/runs", json=body).json()["runs"]
    assert all(run["score"] is not None and mark in str(run["analyzeStepResult"]) for run in answered)
    for run in answered:
        kept = service.run(run["runId"])
        assert kept["score"] == run["score"]
        assert mark not in str(kept)
        assert kept["analyzeStepResult"].keys() == run["analyzeStepResult"].keys()
