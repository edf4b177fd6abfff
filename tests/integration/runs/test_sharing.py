"""What scorers of one request share, counted at the judge: apart and together."""

import uuid
from typing import Any

import pytest

from tests.integration.service import Service

SCORERS = ["faithfulness", "hallucination", "summarization"]
OUTPUT = "The tower has 5 floors; its walls are green. Visitors brought cakes."
FACTS = ["The tower has 5 floors.", "Its walls are green."]


def body(**more: Any) -> dict[str, Any]:
    """A request about texts that no other test has cached; their mark is no claim."""
    mark = f"Everybody should note {uuid.uuid4().hex}."
    return {"input": " ".join([*FACTS, mark]), "context": FACTS, "output": f"{OUTPUT} {mark}", **more}


def spent(service: Service) -> tuple[int, int]:
    calls = service.stub.calls()
    service.stub.reset()
    return calls["total"], calls["tokens"]


def judged(runs: list[dict[str, Any]]) -> list[Any]:
    return [(run["status"], run["score"], run["reason"] is None, run["coverage"]) for run in runs]


@pytest.mark.parametrize("cache", ["use", "off", "refresh"])
@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_three_scorers_cost_two_extractions_less_together_than_apart(service: Service, mode: str, cache: str) -> None:
    apart = [service.run(service.score(scorer, **body(cache="off", mode=mode)).json()["runId"]) for scorer in SCORERS]
    calls_apart, tokens_apart = spent(service)

    service.stub.script({"delay_ms": 100, "times": None})
    reply = service.client.post("/v1/runs", json=body(scorers=SCORERS, cache=cache, mode=mode))
    together = [service.run(run["runId"]) for run in reply.json()["runs"]]
    steps = [step for *_, step, _ in service.stub.ledger()]
    calls, tokens = spent(service)

    assert judged(together) == judged(apart)
    assert len({str(run["preprocessStepResult"]["items"]) for run in together}) == 1
    assert (calls_apart, calls, steps.count("claims")) == (11, 9, 1)
    assert tokens < 0.9 * tokens_apart
    assert sum(run["usage"]["judgeCalls"] for run in together) == calls
    assert sum(run["usage"]["inputTokens"] + run["usage"]["outputTokens"] for run in together) == tokens
    assert [sum(run["usage"]["cacheHits"] for run in runs) for runs in (apart, together)] == [0, 2]


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_scorers_of_one_request_are_judged_side_by_side(service: Service, mode: str) -> None:
    service.stub.script({"delay_ms": 300, "times": None})
    scorers = [*SCORERS, "toxicity", "answer-relevancy"]
    reply = service.client.post(
        "/v1/runs", json=body(scorers=scorers, cache="off", mode=mode, options={"includeReason": False})
    )
    for run in reply.json()["runs"]:
        assert service.run(run["runId"])["status"] == "completed"
    # Claims, questions, and the segments of the two others; then the claims of three and the questions.
    assert service.stub.calls()["max_in_flight"] >= 4
