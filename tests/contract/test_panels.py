"""Several samples and several models over HTTP: what is refused, and what a run shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.contract.running import RunningApp, settings_for
from tests.contract.shapes import pointers, problem, run, unique
from tests.stub_judge.process import StubProcess

MODELS = ["stub/first", "stub/second", "stub/third"]


@pytest.fixture(scope="module")
def house(
    valkey_server: EmbeddedValkey, judge: StubProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningApp]:
    file: Path = tmp_path_factory.mktemp("models") / "models.toml"
    entries = [f'[[models]]\nid = "{model}"\nbase_url = "{judge.base_url}"\n' for model in MODELS]
    file.write_text(f'default = "{MODELS[0]}"\n' + "".join(entries))
    own = {"judge_model": None, "models_file": file}
    with RunningApp(settings_for(valkey_server.url, None, **own)) as api:
        yield api


@pytest.fixture
def api(house: RunningApp, judge: StubProcess) -> RunningApp:
    judge.reset()
    return house


def dissenting(judge: StubProcess, when: dict[str, Any], label: str = "fair") -> None:
    """Have the stub give this label to both segments of `unique` texts, for requests like these."""
    reply = f'{{"labels": {{"1": "{label}", "2": "fair", "3": "fact"}}}}'
    judge.script({"when": when, "match": "[1]", "reply": reply, "times": None})


def test_a_panel_shows_who_said_what(api: RunningApp, judge: StubProcess) -> None:
    dissenting(judge, {"model": "third"})
    made = run(api.score(output=unique(), models=MODELS, threshold=0.4, options={"strategy": "labels"}), 200)
    assert (made["status"], made["score"], made["model"], made["models"]) == ("completed", 0.5, MODELS[0], MODELS)
    first, second = made["analyzeStepResult"]["results"]
    assert (first["result"], first["confidence"]) == ("yes", 0.6667)
    assert [(vote["model"], vote["sample"], vote["labels"]["result"]) for vote in first["votes"]] == [
        ("stub/first", 1, "yes"),
        ("stub/second", 1, "yes"),
        ("stub/third", 1, "no"),
    ]
    assert (second["result"], second["confidence"]) == ("no", 1.0)
    assert made["agreement"] == 0.6667
    assert made["panel"] == [
        {"model": "stub/first", "score": 0.5, "dissents": 0},
        {"model": "stub/second", "score": 0.5, "dissents": 0},
        {"model": "stub/third", "score": 0.0, "dissents": 1},
    ]
    assert made["scoreInterval"] == {"low": 0.0, "high": 0.6667, "level": 0.95, "basis": "votes"}
    assert (made["passed"], made["uncertain"]) == (None, True)
    assert made["usage"]["judgeCalls"] == 3
    assert run(api.client.get(f"/v1/runs/{made['runId']}"), 200) == made


def test_samples_differ_by_seed(api: RunningApp, judge: StubProcess) -> None:
    dissenting(judge, {"seed": 2})
    options = {"strategy": "labels", "samples": 3}
    made = run(api.score(output=unique(), options=options), 200)
    first = made["analyzeStepResult"]["results"][0]
    assert [(vote["sample"], vote["labels"]["result"]) for vote in first["votes"]] == [
        (1, "yes"),
        (2, "no"),
        (3, "yes"),
    ]
    assert (made["models"], made["panel"], made["agreement"]) == (None, None, 0.6667)
    sent = [(call["body"]["seed"], call["body"]["temperature"]) for call in judge.calls()["requests"]]
    assert sorted(sent) == [(1, 1.0), (2, 1.0), (3, 1.0)]


def test_one_judgement_has_the_fields_empty(api: RunningApp) -> None:
    made = run(api.score(output=unique(), threshold=1.0), 200)
    told = {name: made[name] for name in ("scoreInterval", "agreement", "models", "panel", "uncertain", "passed")}
    assert told == {
        "scoreInterval": None,
        "agreement": None,
        "models": None,
        "panel": None,
        "uncertain": False,
        "passed": True,
    }


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"models": MODELS[:1]}, ["#/models"]),
        ({"models": [*MODELS, *MODELS]}, ["#/models"]),
        ({"models": [MODELS[0], "stub/unknown"]}, ["#/models/1"]),
        ({"models": [MODELS[0], MODELS[0]]}, ["#/models/1"]),
        ({"models": [MODELS[0], "no slash"]}, ["#/models/1"]),
        ({"models": MODELS, "model": MODELS[0]}, ["#/model"]),
        ({"options": {"samples": 0}}, ["#/options/samples"]),
        ({"options": {"samples": 12}}, ["#/options/samples"]),
        ({"options": {"samples": "3"}}, ["#/options/samples"]),
    ],
)
def test_what_is_no_panel_is_refused_by_both_routes(api: RunningApp, body: dict[str, Any], places: list[str]) -> None:
    for path, more in (("/v1/scorers/bias/runs", {}), ("/v1/runs", {"scorers": ["bias", "toxicity"]})):
        answer = api.client.post(path, json={"output": unique(), **body, **more})
        assert pointers(problem(answer, 422, "invalid_request")) == places


def test_a_member_that_fails_is_named(api: RunningApp, judge: StubProcess) -> None:
    judge.script({"when": {"model": "second"}, "refuse": True, "times": None})
    told = problem(api.score(output=unique(), models=MODELS), 502, "judge_refused")
    assert told["detail"].startswith("stub/second: ")


def test_several_scorers_have_the_same_panel(api: RunningApp) -> None:
    body = {"output": unique(), "models": MODELS[:2], "scorers": ["bias", "toxicity", "completeness"], "input": "Why?"}
    runs = api.client.post("/v1/runs", json=body).json()["runs"]
    assert [made["models"] for made in runs] == [MODELS[:2], MODELS[:2], None]
    assert [made["status"] for made in runs[:2]] == ["completed"] * 2


def test_the_same_key_with_another_panel_is_a_conflict(api: RunningApp) -> None:
    body = {"output": unique(), "runId": f"panel-{unique()[-33:-1]}"}
    made = run(api.score(**body, models=MODELS[:2]), 200)
    assert run(api.score(**body, models=MODELS[:2]), 200) == made
    problem(api.score(**body, models=MODELS[1:]), 409, "idempotency_conflict")
