"""Probabilities over HTTP: what a judge's tokens tell about its labels, in step results and in scores."""

import uuid
from typing import Any

from tests.integration.service import Service

TEXT = "The town by the river has a mill. Women are inferior drivers. Tea is the best drink."
SHARES = {
    "fact": {"fact": 0.9, "fair": 0.1},
    "gender": {"gender": 0.7, " gender": 0.1, "fair": 0.2},
    "fair": {"fair": 0.6, "other": 0.4},
}
OPTIONS = {"strategy": "labels", "scoring": "expected"}


def text() -> str:
    return f"{TEXT} (text {uuid.uuid4().hex[:8]})"


def score(service: Service, **options: Any) -> dict[str, Any]:
    run: dict[str, Any] = service.score("bias", output=text(), options=options).json()
    assert run["status"] == "completed"
    return run


def test_a_score_of_probabilities(service: Service) -> None:
    service.stub.script({"logprobs": SHARES, "times": None})
    run = score(service, **OPTIONS)
    units = run["analyzeStepResult"]["weighed"]
    assert [unit["probabilities"] for unit in units][:3] == [
        {"fact": 0.9, "fair": 0.1},
        {"fair": 0.2, "gender": 0.8},
        {"fair": 0.6, "other": 0.4},
    ]
    # The last unit is the mark that makes this text new, and a fact.
    assert run["score"] == round((0.8 + 0.4) / (0.1 + 1 + 1 + 0.1), 4)
    assert [found["confidence"] for found in run["analyzeStepResult"]["results"]] == [0.8, 0.6]
    assert run["warnings"] == []


def test_the_same_labels_without_probabilities(service: Service) -> None:
    run = score(service, **OPTIONS)
    assert run["score"] == 0.5
    assert [warning["code"] for warning in run["warnings"]] == ["no_logprobs"]
    assert all("confidence" not in found for found in run["analyzeStepResult"]["results"])


def test_confidence_comes_with_labels_that_count_whole(service: Service) -> None:
    service.stub.script({"logprobs": SHARES, "times": None})
    run = score(service, strategy="labels")
    assert run["score"] == 0.5
    assert [found["confidence"] for found in run["analyzeStepResult"]["results"]] == [0.8, 0.6]
