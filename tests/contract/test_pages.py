"""Scorers, health, metrics and the pages for people."""

import re

import jsonschema
import pytest

from app.domain.errors import ErrorCode
from tests.contract.running import RunningApp
from tests.contract.shapes import pointers, problem, run, unique

IDS = {"bias", "toxicity"}


def test_scorers_are_listed_and_described(api: RunningApp) -> None:
    page = api.client.get("/v1/scorers").json()
    assert page["nextCursor"] is None
    assert {scorer["id"] for scorer in page["items"]} >= IDS
    for scorer in page["items"]:
        alone = api.client.get(f"/v1/scorers/{scorer['id']}").json()
        assert {name: value for name, value in alone.items() if name != "definition"} == scorer
        assert scorer["direction"] in {"lower_is_better", "higher_is_better"}
        assert scorer["range"] == [0.0, 1.0]
        assert scorer["needs"]
        strategies = ["three_step", "single_call", "labels"] if scorer["origin"] == "builtin" else ["three_step"]
        assert scorer["strategies"] == (strategies if scorer["usesJudge"] else [])
        assert scorer["scorings"][:1] == (["hard"] if scorer["usesJudge"] else [])
        assert scorer["exampleSets"][:1] == (["none"] if scorer["usesJudge"] else [])
        assert {"name", "low", "high"} == set(scorer["bands"][0])
        jsonschema.Draft202012Validator.check_schema(scorer["optionsSchema"])
        assert "includeReason" in scorer["optionsSchema"]["properties"]
        for schema in scorer["stepSchemas"].values():
            jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("scorer", sorted(IDS))
def test_step_results_satisfy_the_described_schemas(api: RunningApp, scorer: str) -> None:
    described = api.client.get(f"/v1/scorers/{scorer}").json()
    made = run(api.score(scorer, output=unique("You are a damned idiot. Everybody should visit the village.")), 200)
    assert made["scorerVersion"] == described["version"]
    assert made["interpretation"] in {band["name"] for band in described["bands"]}
    for step, schema in described["stepSchemas"].items():
        if made[step] is not None:
            jsonschema.validate(made[step], schema)


def test_unknown_scorers_and_parameters(api: RunningApp) -> None:
    problem(api.client.get("/v1/scorers/no-such"), 404, "not_found")
    assert pointers(problem(api.client.get("/v1/scorers?x=1"), 422, "invalid_request")) == ["#/x"]


def test_health(api: RunningApp) -> None:
    assert api.client.get("/livez").json() == {"status": "alive"}
    ready = api.client.get("/readyz")
    assert ready.status_code == 200
    checks = {check["name"]: check for check in ready.json()["checks"]}
    assert {"redis", "workers", "judge"} <= set(checks)
    assert checks["workers"] == {**checks["workers"], "ok": False, "needed": False}


def test_metrics_count_by_template_and_never_by_path(api: RunningApp) -> None:
    for n in range(5):
        api.client.get(f"/v1/runs/unknown-run-{n}")
        api.client.get(f"/nothing/{n}")
    run(api.score(output=unique()), 200)
    answer = api.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.text
    assert "unknown-run" not in text
    assert "/nothing" not in text
    assert re.search(r'assay_http_requests_total\{method="GET",route="/v1/runs/\{run_id\}",status="404"\} [1-9]', text)
    assert re.search(r'assay_http_requests_total\{method="GET",route="unmatched",status="404"\} [1-9]', text)
    assert re.search(r'assay_runs_total\{mode="inline",scorer="bias",status="completed"\} [1-9]', text)
    assert re.search(r'assay_judge_calls_total\{model="stub/judge",outcome="[a-z_]+"\} [1-9]', text)
    assert "assay_queue_depth" in text
    open_metrics = api.client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_load_nothing_from_elsewhere(api: RunningApp, path: str) -> None:
    answer = api.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"<script|<link|src=|url\(", answer.text)


def test_the_front_page_shows_the_way(api: RunningApp) -> None:
    page = api.client.get("/").text
    assert f"curl -s {api.url}/v1/scorers/bias/runs" in page
    for path in re.findall(r'href="([^"]+)"', page):
        assert api.client.get(path).status_code in (200, 503), path


@pytest.mark.parametrize("host", ["<script>", "a b", "x" * 300, "[::1]:8000", "assay.example"])
def test_the_front_page_repeats_no_host_that_is_none(api: RunningApp, host: str) -> None:
    page = api.client.get("/", headers={"Host": host}).text
    shown = host if host in ("[::1]:8000", "assay.example") else "localhost:8000"
    assert f"curl -s http://{shown}/v1/" in page


def test_the_reference_has_every_operation(api: RunningApp) -> None:
    page = api.client.get("/docs").text
    document = api.client.get("/openapi.json").json()
    for methods in document["paths"].values():
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in page


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_problem_type_is_a_page(api: RunningApp, code: ErrorCode) -> None:
    answer = api.client.get(f"/problems/{code}")
    assert answer.status_code == 200
    assert answer.text.startswith(f"{code} (")


def test_other_problem_codes_are_not(api: RunningApp) -> None:
    problem(api.client.get("/problems/nothing"), 404, "not_found")
