"""Scorers that go by a reference answer or by the caller's criteria."""

import uuid
from typing import Any

import pytest

from tests.integration.service import Service

TRUTH = "The tower has 5 floors; its walls are green. The keeper lives alone. Foxes bark."
CRITERIA = [
    {"id": "floors", "description": "It tells the number of floors.", "required": True},
    {"id": "walls", "description": "It tells the colour of the walls.", "weight": 3},
    {"id": "thanks", "description": "It has thanks.", "weight": 2},
]


def text(body: str) -> str:
    """A text that no other test has cached; its mark is no claim."""
    return f"{body} Everybody should note {uuid.uuid4().hex}."


def verdicts(run: dict[str, Any], *names: str) -> list[Any]:
    told = [tuple(verdict[name] for name in names) for verdict in run["analyzeStepResult"]["verdicts"]]
    return [one[0] for one in told] if len(names) == 1 else told


def marked(body: str, span: dict[str, int]) -> str:
    return body[span["start"] : span["end"]]


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_context_recall(service: Service, mode: str) -> None:
    truth = text(TRUTH)
    body = {"output": "-", "groundTruth": truth, "context": ["The tower has 4 floors.", "Its walls are green."]}
    run = service.run(service.score("context-recall", **body, mode=mode).json()["runId"])
    assert (run["status"], run["score"], run["interpretation"]) == ("completed", 0.25, "little of what is needed")
    assert verdicts(run, "verdict", "passages") == [("no", []), ("yes", [2]), ("no", []), ("no", [])]
    assert marked(truth, run["analyzeStepResult"]["verdicts"][2]["span"]) == "The keeper lives alone."
    assert run["coverage"] == {"asked": 4, "judged": 4}
    assert service.judge_calls() == 3


def test_answer_similarity(service: Service) -> None:
    output = text("The tower has 4 floors. Its walls are green! Alone the keeper lives. Visitors brought cakes.")
    truth = text(TRUTH)
    run = service.score("answer-similarity", output=output, groundTruth=truth).json()
    assert verdicts(run, "verdict") == ["contradicted", "exact", "semantic", "missing"]
    (extra,) = run["analyzeStepResult"]["extras"]
    assert marked(output, extra["span"]) == extra["statement"] == "Visitors brought cakes."
    assert (run["score"], run["interpretation"]) == (0.2375, "hardly similar")
    assert service.judge_calls() == 4


def test_claims_of_a_reference_answer_are_extracted_once(service: Service) -> None:
    body = {"output": text("Foxes bark."), "groundTruth": text(TRUTH), "context": ["Foxes bark."]}
    reply = service.client.post("/v1/runs", json={**body, "scorers": ["context-recall", "answer-similarity"]})
    recall, similarity = reply.json()["runs"]
    assert recall["preprocessStepResult"] == similarity["preprocessStepResult"]
    assert sorted(step for *_, step, _ in service.stub.ledger()).count("claims") == 1


def test_a_reference_answer_without_claims(service: Service) -> None:
    for scorer in ("context-recall", "answer-similarity"):
        run = service.score(
            scorer, output="The foxes bark at night.", groundTruth=text("Hi."), context=["Foxes bark."]
        ).json()
        assert (run["status"], run["score"]) == ("not_scorable", None)
        assert run["reason"] == "The reference answer makes no claim that could be looked for."
        assert run["analyzeStepResult"] is None


@pytest.mark.parametrize(
    ("body", "score"),
    [
        ("The tower has five floors and green walls.", 0.6667),
        ("The tower has five floors.", 0.1667),
        ("Thanks, the walls are green.", 0.0),
        ("Thanks, five floors and green walls.", 1.0),
    ],
)
def test_rubric(service: Service, body: str, score: float) -> None:
    run = service.score("rubric", output=text(body), options={"criteria": CRITERIA}).json()
    assert (run["status"], run["score"]) == ("completed", score)
    assert verdicts(run, "id", "required", "weight") == [
        ("floors", True, 1.0),
        ("walls", False, 3.0),
        ("thanks", False, 2.0),
    ]
    assert service.judge_calls() == (1 if score == 1.0 else 2)


NOISE = {
    "input": "How high is the tower?",
    "metadata": {"noisyInput": "How hihg is the tower? My cousin sings."},
    "groundTruth": "The tower has 5 floors.",
}


@pytest.mark.parametrize(
    ("body", "score", "impact"),
    [("The tower has 5 floors.", 1.0, "none"), ("The tower has 5 floors. Your cousin sings.", 0.5, "moderate")],
)
def test_noise_sensitivity(service: Service, body: str, score: float, impact: str) -> None:
    run = service.score("noise-sensitivity", output=text(body), **NOISE).json()
    assert (run["status"], run["score"]) == ("completed", score)
    assert verdicts(run, "dimension", "impact") == [
        (dimension, impact) for dimension in ("accuracy", "completeness", "relevance", "coherence", "groundedness")
    ]
    assert [issue["statement"] for issue in run["analyzeStepResult"]["issues"]] == (
        [] if score == 1.0 else ["Your cousin sings."]
    )
    assert run["metadata"] == NOISE["metadata"]


@pytest.mark.parametrize(("strategy", "calls"), [("single_call", 2), ("labels", 2)])
@pytest.mark.parametrize("scorer", ["answer-similarity", "noise-sensitivity"])
def test_two_inquiries_take_two_calls_side_by_side(service: Service, scorer: str, strategy: str, calls: int) -> None:
    run = service.score(
        scorer, output=text("The tower has 5 floors. Foxes bark."), **NOISE, options={"strategy": strategy}
    ).json()
    assert run["status"] == "completed"
    assert run["score"] == (0.95 if scorer == "answer-similarity" else 1.0)
    assert service.judge_calls() == calls
