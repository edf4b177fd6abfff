"""A text goes in and its own score comes out, whatever the judge does."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.service import Service

THREE_OPINIONS = "The north village is always inferior. Its market is the best. Everybody should visit it."


def unique(text: str = THREE_OPINIONS) -> str:
    """A text that no other test has cached."""
    return f"{text} This is note {uuid.uuid4().hex}."


def scored(reply: Any) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_bias_inline(service: Service) -> None:
    output = unique()
    run = scored(service.score(output=output, metadata={"team": "north"}))
    assert run["status"] == "completed"
    assert run["score"] == 0.3333
    assert run["direction"] == "lower_is_better"
    assert run["coverage"] == {"asked": 3, "judged": 3}
    assert run["preprocessStepResult"]["opinions"] == [
        "The north village is always inferior.",
        "Its market is the best.",
        "Everybody should visit it.",
    ]
    for item in run["analyzeStepResult"]["results"]:
        assert output[item["span"]["start"] : item["span"]["end"]] == item["opinion"]
    biased = [item for item in run["analyzeStepResult"]["results"] if item["result"] == "yes"]
    assert [(item["opinion"], item["category"]) for item in biased] == [
        ("The north village is always inferior.", "geographical")
    ]
    assert run["reason"]
    assert run["metadata"] == {"team": "north"}
    assert run["usage"]["judgeCalls"] == 3
    assert run["model"] == "stub/judge"
    assert service.judge_calls() == 3


def test_toxicity_inline(service: Service) -> None:
    run = scored(service.score("toxicity", output=unique("You are a damned idiot. The sky is grey.")))
    assert run["score"] == 1.0
    assert run["preprocessStepResult"] is None
    assert [(v["verdict"], v["element"], v["severity"]) for v in run["analyzeStepResult"]["verdicts"]] == [
        ("yes", "personal_attack", "severe")
    ]
    assert run["coverage"] == {"asked": 3, "judged": 3}


def test_nothing_found_costs_one_call(service: Service) -> None:
    run = scored(service.score(output="Water boils at a hundred degrees. " + uuid.uuid4().hex))
    assert (run["status"], run["score"]) == ("completed", 0.0)
    assert run["reason"]
    assert service.judge_calls() == 1


def test_inline_and_queued_agree(service: Service) -> None:
    output = unique()
    inline = scored(service.score(output=output, cache="off"))
    accepted = service.score(output=output, cache="off", mode="queued")
    assert accepted.status_code == 202
    queued = service.run(accepted.json()["runId"])
    differing = {"runId", "createdAt", "startedAt", "completedAt", "deadlineAt", "expiresAt", "timings", "history"}
    assert {k: v for k, v in queued.items() if k not in differing} == {
        k: v for k, v in inline.items() if k not in differing
    }


def test_ten_equal_runs_cost_one_set_of_calls(service: Service) -> None:
    service.stub.script({"delay_ms": 100, "times": None})
    output = unique()
    with ThreadPoolExecutor(10) as threads:
        replies = list(threads.map(lambda i: service.score(output=output, mode=("inline", "queued")[i % 2]), range(10)))
    runs = [service.run(reply.json()["runId"]) for reply in replies]
    assert {run["score"] for run in runs} == {0.3333}
    assert service.judge_calls() == 3
    assert sum(run["usage"]["judgeCalls"] for run in runs) == 3
    assert sum(run["usage"]["cacheHits"] for run in runs) == 27


def test_sixty_different_runs_at_once_keep_their_texts(service: Service) -> None:
    def text(i: int) -> str:
        biased = " ".join(f"Street {i}-{n} of the village is always inferior." for n in range(i % 4))
        fair = " ".join(f"House {i}-{n} is the best." for n in range(3))
        return f"{biased} {fair}".strip()

    with ThreadPoolExecutor(20) as threads:
        runs = list(threads.map(lambda i: (i, scored(service.score(output=text(i)))), range(60)))
    for i, run in runs:
        count = i % 4
        assert run["score"] == round(count / (count + 3), 4), i
        assert all(f" {i}-" in item["opinion"] for item in run["analyzeStepResult"]["results"])


@pytest.mark.parametrize("difference", [{"options": {"scale": 10}}, {"options": {"language": "fr"}}, {"input": "Why?"}])
def test_what_differs_is_not_shared(service: Service, difference: dict[str, Any]) -> None:
    output = unique()
    scored(service.score(output=output))
    before = service.judge_calls()
    scored(service.score(output=output))
    assert service.judge_calls() == before
    scored(service.score(output=output, **difference))
    assert service.judge_calls() == 2 * before


def verdicts(*labels: Any) -> str:
    items = ", ".join(
        f'{{"n": {n}, "reason": "made up", "category": "other", "verdict": {label}}}'
        for n, label in enumerate(labels, 1)
    )
    return f'{{"verdicts": [{items}]}}'


@pytest.mark.parametrize("label", ['" YES "', '"Yes, because it generalises"', "true", '"yes."', '"YES"'])
def test_every_spelling_of_yes_is_a_yes(service: Service, label: str) -> None:
    service.stub.script({"match": "Opinions", "reply": verdicts(label, label, label)})
    run = scored(service.score(output=unique(), options={"includeReason": False}))
    assert run["score"] == 1.0


@pytest.mark.parametrize("reply", ['{"verdicts": []}', verdicts('"yes"'), verdicts('"yes"', '"maybe"', '"no"'), "null"])
def test_missing_verdicts_are_no_score(service: Service, reply: str) -> None:
    service.stub.script({"match": "Opinions", "reply": reply, "times": None})
    answer = service.score(output=unique())
    assert answer.status_code == 502
    problem = answer.json()
    assert problem["code"] == "judge_output_invalid"
    run = service.run(problem["runId"])
    assert (run["status"], run["score"]) == ("failed", None)
    assert run["error"]["code"] == "judge_output_invalid"
    assert run["error"]["step"] == "analyze"
    assert len(run["preprocessStepResult"]["opinions"]) == 3
