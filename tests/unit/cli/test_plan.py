"""What `assay up` runs: no secret in an argument, one judge for all, ports that are free."""

import os
from pathlib import Path

import pytest

from app.adapters.local_model import LocalModel
from app.cli import plan as plan_module
from app.cli.judge_choice import JudgeChoice, Source
from app.cli.plan import Plan, make_plan, url_of
from app.settings import Settings

LOCAL = JudgeChoice(Source.LOCAL, "local/m", local=LocalModel("local/m", Path("/models/m.gguf")))
REDIS = "redis://user:secret-password@host:6379/0"


@pytest.fixture(autouse=True)
def ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "free_port", lambda _host: 41234)


def planned(choice: JudgeChoice = LOCAL, environ: dict[str, str] | None = None, **values: object) -> Plan:
    return make_plan(Settings(_env_file=None, **values), choice, REDIS, environ or {})  # type: ignore[arg-type]


def test_local_judge_is_told_to_api_and_workers() -> None:
    plan = planned()
    assert plan.judge is not None
    assert "/models/m.gguf" in plan.judge.arguments
    for command in (plan.api, *plan.workers):
        assert command.environment["ASSAY_JUDGE_MODEL"] == "local/m"
        assert command.environment["ASSAY_JUDGE_BASE_URL"] == "http://127.0.0.1:41234/v1"
        assert command.environment["ASSAY_JUDGE_CONTEXT_TOKENS"] in plan.judge.arguments


def test_context_that_the_operator_sets_is_served_and_told() -> None:
    plan = planned(judge_context_tokens=16_384)
    assert plan.judge is not None
    assert "16384" in plan.judge.arguments
    assert plan.api.environment["ASSAY_JUDGE_CONTEXT_TOKENS"] == "16384"


def test_configured_judge_starts_nothing() -> None:
    plan = planned(JudgeChoice(Source.CONFIGURED, None), models_file=Path("models.toml"))
    assert plan.judge is None
    assert "ASSAY_JUDGE_MODEL" not in plan.api.environment


def test_key_in_the_environment_names_the_model_only() -> None:
    plan = planned(JudgeChoice(Source.KEY, "openai/m", key="OPENAI_API_KEY"), {"OPENAI_API_KEY": "sk-secret"})
    assert plan.judge is None
    assert plan.api.environment["ASSAY_JUDGE_MODEL"] == "openai/m"
    assert "ASSAY_JUDGE_BASE_URL" not in plan.api.environment


def test_children_find_this_assay_and_what_the_user_put_on_the_path() -> None:
    paths = planned(environ={"PYTHONPATH": "/theirs"}).api.environment["PYTHONPATH"].split(os.pathsep)
    assert (Path(paths[0]) / "app" / "cli").is_dir()
    assert paths[1:] == ["/theirs"]


def test_no_secret_is_in_an_argument_or_a_repr() -> None:
    plan = planned(environ={"ASSAY_JUDGE_API_KEY": "sk-secret"})
    for command in plan.commands:
        assert command.environment["ASSAY_JUDGE_API_KEY"] == "sk-secret"
        for secret in ("sk-secret", "secret-password"):
            assert secret not in " ".join(command.arguments)
            assert secret not in repr(command)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_as_many_workers_as_set_each_with_its_name(count: int) -> None:
    names = [command.name for command in planned(workers=count).workers]
    assert names == [f"worker-{number}" for number in range(1, count + 1)]


def test_port_zero_becomes_a_real_one() -> None:
    plan = planned(port=0)
    assert plan.url == "http://127.0.0.1:41234"
    assert plan.api.environment["ASSAY_PORT"] == "41234"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("assay.internal", "http://assay.internal:8000"),
    ],
)
def test_url_is_one_that_can_be_called(host: str, url: str) -> None:
    assert url_of(host, 8000) == url


def test_an_operators_longer_patience_is_kept_for_a_local_judge() -> None:
    assert planned(judge_timeout_s=600).api.environment["ASSAY_JUDGE_TIMEOUT_S"] == "600.0"
    assert float(planned(judge_timeout_s=5).api.environment["ASSAY_JUDGE_TIMEOUT_S"]) >= 60
