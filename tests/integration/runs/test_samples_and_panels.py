"""Several samples and several models, judged over HTTP by API and worker processes."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.integration.service import Service, free_port
from tests.stub_judge.process import StubProcess

MODELS = ["stub/judge", "stub/second", "stub/third"]


@pytest.fixture(scope="module")
def running_house(valkey_server: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    folder, port = tmp_path_factory.mktemp("service"), free_port()
    entries = [f'[[models]]\nid = "{model}"\nbase_url = "http://127.0.0.1:{port}/v1"\n' for model in MODELS]
    (folder / "models.toml").write_text("".join(entries))
    service = Service(valkey_server.url, folder, models_file=str(folder / "models.toml"))
    service.stub = StubProcess(port=port)
    with service:
        yield service


@pytest.fixture
def house(running_house: Service) -> Service:
    running_house.stub.reset()
    return running_house


def text() -> str:
    return f"The north village is always inferior. Everybody should visit it. This is note {uuid.uuid4().hex}."


def finds_no_bias(house: Service, **when: Any) -> None:
    """Have the judge hold both opinions to be fair, for requests like these."""
    verdicts = ", ".join(
        f'{{"n": {n}, "reason": "It is a matter of taste.", "verdict": "no", "category": "none"}}' for n in (1, 2)
    )
    analysis = {"response_format.json_schema.name": "bias_analyze"}
    house.stub.script({"when": analysis | when, "reply": f'{{"verdicts": [{verdicts}]}}', "times": None})


def told(run: dict[str, Any]) -> dict[str, Any]:
    """What a run says, but for ids, times and what it cost."""
    left_out = {"runId", "createdAt", "startedAt", "completedAt", "deadlineAt", "expiresAt", "timings", "history"}
    return {name: value for name, value in run.items() if name not in left_out}


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_a_panel(house: Service, mode: str) -> None:
    finds_no_bias(house, model="third")
    body = {"output": text(), "models": MODELS, "threshold": 0.2, "options": {"includeReason": False}}
    run = house.run(house.score(**body, mode=mode).json()["runId"])
    assert (run["status"], run["score"], run["models"], run["model"]) == ("completed", 0.5, MODELS, MODELS[0])
    assert run["panel"] == [
        {"model": "stub/judge", "score": 0.5, "dissents": 0},
        {"model": "stub/second", "score": 0.5, "dissents": 0},
        {"model": "stub/third", "score": 0.0, "dissents": 1},
    ]
    assert [result["confidence"] for result in run["analyzeStepResult"]["results"]] == [0.6667, 1.0]
    assert (run["agreement"], run["passed"], run["uncertain"]) == (0.5, None, True)
    assert run["usage"]["judgeCalls"] == 4
    steps = sorted((call["body"]["model"], step) for call, step in zip(calls(house), names(house), strict=True))
    assert steps == [
        ("judge", "bias_analyze"),
        ("judge", "bias_preprocess"),
        ("second", "bias_analyze"),
        ("third", "bias_analyze"),
    ]


def calls(house: Service) -> list[dict[str, Any]]:
    return list(house.stub.calls()["requests"])


def names(house: Service) -> list[str]:
    return [call["body"]["response_format"]["json_schema"]["name"] for call in calls(house)]


def test_inline_and_queued_say_the_same(house: Service) -> None:
    finds_no_bias(house, model="second", seed=2)
    body = {"output": text(), "models": MODELS[:2], "threshold": 0.2, "options": {"samples": 3}, "cache": "off"}
    runs = [house.run(house.score(**body, mode=mode).json()["runId"]) for mode in ("inline", "queued")]
    assert told(runs[0]) == told(runs[1])
    assert runs[0]["usage"]["judgeCalls"] == 8
    assert [vote["labels"]["result"] for vote in runs[0]["analyzeStepResult"]["results"][0]["votes"]] == [
        *("yes", "yes", "yes"),
        *("yes", "no", "yes"),
    ]


def test_samples_are_asked_side_by_side_and_cached_one_by_one(house: Service) -> None:
    house.stub.script({"delay_ms": 200, "times": None})
    body = {"output": text(), "options": {"samples": 5, "strategy": "labels"}}
    first = house.score(**body).json()
    assert (first["usage"]["judgeCalls"], first["agreement"], first["scoreInterval"]["low"]) == (5, 1.0, 0.5)
    assert house.stub.calls()["max_in_flight"] == 5
    more = house.score(**body | {"options": {"samples": 7, "strategy": "labels"}}).json()
    assert (more["usage"]["judgeCalls"], more["usage"]["cacheHits"]) == (2, 5)


def test_a_provider_that_refuses_seeds_is_asked_without(house: Service) -> None:
    refusal = {"error": {"message": "body.seed: extra inputs are not permitted"}}
    house.stub.script({"when": {"seed": None}, "status": 400, "body": refusal, "times": None})
    body = {"output": text(), "model": "stub/third", "options": {"samples": 3, "strategy": "labels"}}
    run = house.score(**body).json()
    assert (run["status"], run["score"], run["agreement"]) == ("completed", 0.5, 1.0)
    taken = [call["body"] for call in calls(house) if "seed" not in call["body"]]
    assert [body["temperature"] for body in taken] == [1.0] * 3


def test_kept_results_hold_votes_and_no_text(house: Service) -> None:
    output = text()
    run = house.score(output=output, models=MODELS[:2], store="result").json()
    kept = house.client.get(f"/v1/runs/{run['runId']}").json()
    first = kept["analyzeStepResult"]["results"][0]
    assert (first["opinion"], first["reason"]) == ("", None)
    assert [vote["model"] for vote in first["votes"]] == MODELS[:2]
    assert kept["panel"] == run["panel"]


@pytest.mark.parametrize("mode", ["inline", "queued"])
def test_a_member_that_is_refused_fails_the_run_and_is_named(house: Service, mode: str) -> None:
    house.stub.script({"when": {"model": "second"}, "status": 401, "times": None})
    body = {"output": text(), "models": MODELS[:2], "runId": f"panel-{uuid.uuid4().hex}"}
    house.score(**body, mode=mode)
    run = house.run(body["runId"])
    assert (run["status"], run["score"], run["panel"]) == ("failed", None, None)
    assert run["error"]["detail"].startswith("stub/second: ")
