"""Scorers that compare: claims with a context, answers with a question, passages with both."""

import uuid
from typing import Any

import pytest

from tests.integration.service import Service

CONTEXT = ["The tower has 5 floors.\nIts walls are green.", "The keeper lives there alone.", "The foxes are not lazy."]
# Four claims in three segments: two supported, one contradicted, one that the context does not hold.
OUTPUT = "The tower has 4 floors; its walls are green. The foxes are not lazy. Visitors brought cakes."


def text(body: str = OUTPUT) -> str:
    """A text that no other test has cached; its mark is no claim."""
    return f"{body} Everybody should note {uuid.uuid4().hex}."


def claims(run: dict[str, Any], name: str = "verdict") -> list[tuple[Any, list[int]]]:
    return [(verdict[name], verdict["passages"]) for verdict in run["analyzeStepResult"]["verdicts"]]


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_faithfulness(service: Service, mode: str) -> None:
    output = text()
    run = service.run(service.score("faithfulness", output=output, context=CONTEXT, mode=mode).json()["runId"])
    assert (run["status"], run["score"], run["interpretation"]) == ("completed", 0.5, "partly supported")
    assert claims(run) == [("no", [1]), ("yes", [1]), ("yes", [3]), ("unsure", [])]
    items = run["preprocessStepResult"]["items"]
    assert [item["claim"] for item in items[:2]] == ["The tower has 4 floors", "its walls are green."]
    assert {output[item["span"]["start"] : item["span"]["end"]] for item in items[:2]} == {OUTPUT[:44]}
    assert run["coverage"] == {"asked": 4, "judged": 4}
    assert service.judge_calls() == 3


def test_hallucination(service: Service) -> None:
    run = service.score("hallucination", output=text(), context=CONTEXT).json()
    assert (run["score"], run["direction"]) == (0.5, "lower_is_better")
    assert claims(run, "kind") == [("contradicted", [1]), (None, [1]), (None, [3]), ("unsupported", [])]


@pytest.mark.parametrize(("strategy", "calls"), [("single_call", 1), ("labels", 1)])
def test_strategies_of_one_call_judge_segments(service: Service, strategy: str, calls: int) -> None:
    request = {"output": text(), "context": ["The tower has 4 floors; its walls are green."]}
    run = service.score("faithfulness", **request, options={"strategy": strategy}).json()
    assert [verdict["verdict"] for verdict in run["analyzeStepResult"]["verdicts"]] == [
        "yes",
        "unsure",
        "unsure",
        "unsure",
    ]
    assert run["score"] == 0.25
    assert (run["reason"] is None) == (strategy == "labels")
    assert service.judge_calls() == calls


@pytest.mark.parametrize("cache", ["use", "off", "refresh"])
@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_claims_are_extracted_once_for_all_scorers_of_a_request(service: Service, cache: str, mode: str) -> None:
    service.stub.script({"delay_ms": 100, "times": None})
    body = {"output": text(), "context": CONTEXT, "scorers": ["faithfulness", "hallucination"], "cache": cache}
    reply = service.client.post("/v1/runs", json={**body, "mode": mode})
    runs = [service.run(run["runId"]) for run in reply.json()["runs"]]
    assert [run["score"] for run in runs] == [0.5, 0.5]
    assert runs[0]["preprocessStepResult"] == runs[1]["preprocessStepResult"]
    steps = sorted(step for *_, step, _ in service.stub.ledger())
    assert steps == [
        "claims",
        "faithfulness_analyze",
        "faithfulness_reason",
        "hallucination_analyze",
        "hallucination_reason",
    ]
    assert sum(run["usage"]["judgeCalls"] for run in runs) == 5
    assert sum(run["usage"]["cacheHits"] for run in runs) == 1


def test_equal_claims_of_another_request_are_not_shared_when_the_cache_is_off(service: Service) -> None:
    body = {"output": text(), "context": CONTEXT, "scorers": ["faithfulness", "hallucination"], "cache": "off"}
    for calls in (5, 10):
        assert service.client.post("/v1/runs", json=body).status_code == 200
        assert service.judge_calls() == calls


def test_answer_relevancy(service: Service) -> None:
    run = service.score(
        "answer-relevancy", input="How high is the tower?", output=text("The tower has 5 floors. Hi.")
    ).json()
    assert [item["verdict"] for item in run["analyzeStepResult"]["verdicts"]] == ["yes", "no"]
    assert run["score"] == 0.5


def test_context_precision_and_relevance(service: Service) -> None:
    body = {
        "input": "How high is the tower?",
        "output": text("It has five floors."),
        "context": ["The foxes are lazy.", "The tower has 5 floors.", " ", "The tower is green."],
        "scorers": ["context-precision", "context-relevance"],
    }
    precision, relevance = service.client.post("/v1/runs", json=body).json()["runs"]
    assert precision["score"] == 0.5
    assert [(one["number"], one["verdict"]) for one in precision["analyzeStepResult"]["verdicts"]] == [
        (1, "no"),
        (2, "yes"),
        (4, "no"),
    ]
    assert relevance["score"] == 0.5667
    assert [(one["relevance"], one["used"]) for one in relevance["analyzeStepResult"]["verdicts"]] == [
        ("none", None),
        ("high", True),
        ("high", False),
    ]


@pytest.mark.parametrize("context", [None, [], [" ", "\n"]])
def test_a_context_that_is_missing_is_named(service: Service, context: Any) -> None:
    for path, body in (
        ("/v1/scorers/faithfulness/runs", {}),
        ("/v1/runs", {"scorers": ["toxicity", "hallucination", "faithfulness"]}),
    ):
        reply = service.client.post(path, json={"output": OUTPUT, "context": context, **body})
        assert reply.status_code == 422
        assert {error["pointer"] for error in reply.json()["errors"]} == {"#/context"}
    assert service.judge_calls() == 0


def test_a_text_without_claims(service: Service) -> None:
    run = service.score("faithfulness", output=text("Hi."), context=CONTEXT).json()
    assert (run["status"], run["score"]) == ("not_scorable", None)
    assert run["reason"] == "This text makes no claim that could be checked."
    run = service.score("hallucination", output=text("Hi."), context=CONTEXT).json()
    assert (run["status"], run["score"]) == ("completed", 0.0)


def test_a_long_context_is_judged_in_pieces(service: Service) -> None:
    filler = [f"Paragraph {number} tells of the weather in the hills. " * 40 for number in range(40)]
    context = [*filler, "The tower has 4 floors; its walls are green.", *filler]
    run = service.score("faithfulness", output=text("The tower has 4 floors."), context=context).json()
    assert (run["status"], run["score"]) == ("completed", 1.0)
    assert claims(run) == [("yes", [41])]
    assert run["coverage"] == {"asked": 1, "judged": 1}
    assert service.judge_calls() > 3
