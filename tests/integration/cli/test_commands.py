"""`assay doctor` and `assay score` beside a running service, as a user calls them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.adapters.providers import PROVIDERS
from app.cli.plan import free_port
from tests.integration.service import ROOT, Service

TEXT = "I think the new stadium is ugly. It opens in May."
KEYS = {provider.key_variable for provider in PROVIDERS.values()}


@pytest.fixture(scope="module")
def service(valkey_server: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(valkey_server.url, tmp_path_factory.mktemp("service")) as service:
        yield service


def assay(service: Service, *words: str, given: str = "", **settings: str | None) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in service.environment().items() if name not in KEYS}
    ours = {f"ASSAY_{name.upper()}": value for name, value in settings.items()}
    environment = {name: value for name, value in (kept | {"COLUMNS": "200"} | ours).items() if value is not None}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *words],
        check=False,
        cwd=ROOT,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


def levels(shown: str) -> dict[str, str]:
    """Return the level of each line of `assay doctor` by what it is about."""
    return dict(reversed(pair) for pair in re.findall(r"^(ok|warn|fail) +(.+?)  ", shown, flags=re.MULTILINE))  # type: ignore[misc]


class TestDoctor:
    def test_all_well(self, service: Service) -> None:
        done = assay(service, "doctor")
        assert done.returncode == 0, done.stdout
        assert levels(done.stdout) == {
            "versions": "ok",
            "settings": "ok",
            "redis": "ok",
            "redis: eviction": "ok",
            "redis: persistence": "ok",
            "service": "ok",
            "service: redis": "ok",
            "service: workers": "ok",
            "service: judge": "ok",
            "judge": "ok",
            "scorers": "ok",
        }

    def test_a_stopped_service_is_worth_knowing_only(self, service: Service) -> None:
        done = assay(service, "doctor", port=str(free_port("127.0.0.1")))
        assert done.returncode == 0
        assert levels(done.stdout)["service"] == "warn"
        assert levels(done.stdout)["workers"] == "ok"

    def test_that_no_worker_is_alive_is_said_with_an_api_and_without(self, service: Service, tmp_path: Path) -> None:
        embedded = start_valkey(tmp_path / "data")
        idle = Service(embedded.url, tmp_path, workers=0)
        nowhere = str(free_port("127.0.0.1"))
        with idle:
            by_api = assay(idle, "doctor")
            by_redis = assay(idle, "doctor", port=nowhere)
        by_socket = assay(service, "doctor", redis_url=None, data_dir=str(tmp_path / "data"), port=nowhere)
        embedded.stop()
        by_nobody = assay(service, "doctor", redis_url=None, data_dir=str(tmp_path / "data"), port=nowhere)
        for done in (by_api, by_redis, by_socket):
            assert done.returncode == 0, done.stdout
            assert "no worker is alive" in done.stdout
        assert by_nobody.returncode == 0
        assert "workers" not in levels(by_nobody.stdout)

    def test_something_else_on_the_port_is_in_the_way(self, service: Service) -> None:
        done = assay(service, "doctor", port=service.stub.url.rpartition(":")[2])
        assert done.returncode == 1
        assert levels(done.stdout)["service"] == "fail"

    @pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "not a url", "unix:///nonexistent.sock"])
    def test_no_redis_is_in_the_way(self, service: Service, url: str) -> None:
        done = assay(service, "doctor", redis_url=url)
        assert done.returncode == 1
        assert levels(done.stdout)["redis"] == "fail"
        assert "ASSAY_REDIS_URL" in done.stdout
        assert "Traceback" not in done.stderr

    def test_a_refused_key_is_in_the_way_and_not_shown(self, service: Service) -> None:
        service.stub.script({"status": 401, "body": {"error": {"message": "bad key"}}, "times": 5})
        done = assay(service, "doctor", judge_api_key="canary-3381")
        service.stub.reset()
        assert done.returncode == 1
        assert "ASSAY_JUDGE_API_KEY" in next(line for line in done.stdout.splitlines() if line.startswith("fail"))
        assert "canary-3381" not in done.stdout + done.stderr


class TestScore:
    def test_card(self, service: Service) -> None:
        done = assay(service, "score", TEXT, "-s", "bias")
        assert done.returncode == 0, done.stderr
        assert "of 1" in done.stdout
        assert "I think the new stadium is ugly." in done.stdout

    def test_json_of_several(self, service: Service) -> None:
        done = assay(service, "score", "-", "--json", given=TEXT)
        runs = orjson.loads(done.stdout)
        assert [run["scorerId"] for run in runs] == ["bias", "toxicity"]
        assert {run["status"] for run in runs} == {"completed"}

    def test_from_a_file_at_a_url(self, service: Service, tmp_path: Path) -> None:
        path = tmp_path / "text.txt"
        path.write_text(TEXT, encoding="utf-8")
        url = f"http://127.0.0.1:{service.port}"
        assert assay(service, "score", f"@{path}", "--url", url, port="1").returncode == 0

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["", "-s", "bias"], "#/output"),
            ([TEXT, "-s", "nonsense"], "nonsense|scorers"),
            ([TEXT, "-m", "stub/other"], "#/model"),
            ([TEXT, "--url", "http://127.0.0.1:1"], "assay up"),
            ([TEXT, "--url", "ftp://127.0.0.1"], "--url"),
        ],
    )
    def test_a_users_mistake_is_told_without_a_trace(self, service: Service, words: list[str], says: str) -> None:
        done = assay(service, "score", *words)
        assert done.returncode == 2
        assert re.search(says, done.stderr), done.stderr
        assert "Traceback" not in done.stderr

    def test_a_failed_run_is_shown_and_fails(self, service: Service) -> None:
        service.stub.script({"reply": "no JSON at all", "times": None})
        done = assay(service, "score", f"{TEXT} Otherwise all is well.", "-s", "bias")
        service.stub.reset()
        assert done.returncode == 1
        assert "no score: failed" in done.stdout
        assert "judge_output_invalid" in done.stdout


def test_version_and_help(service: Service) -> None:
    assert re.fullmatch(r"assay \d+\.\d+\.\d+\n", assay(service, "--version").stdout)
    assert all(name in assay(service, "--help").stdout for name in ("up", "serve", "worker", "score", "doctor"))
    assert os.linesep in assay(service, "up", "--help").stdout
