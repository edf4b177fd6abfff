"""The image and the compose file say what a careful reader wants to read, and name what exists."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from app.cli.__main__ import cli
from app.settings import Settings

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
OURS = ("api", "worker")
EMPTY_SETTINGS = Settings(_env_file=None)  # type: ignore[call-arg]


def instructions(name: str) -> list[str]:
    return re.findall(rf"^\s*{name} (.*)$", DOCKERFILE.replace("\\\n", " "), flags=re.MULTILINE)


def test_services() -> None:
    assert set(SERVICES) == {"redis", "api", "worker", "prometheus"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert "privileged" not in service


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_loopback_only_and_redis_has_none(name: str) -> None:
    ports = SERVICES[name].get("ports", [])
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert not (name == "redis" and ports)


def test_redis_keeps_and_never_evicts() -> None:
    command = SERVICES["redis"]["command"]
    assert command[command.index("--appendonly") + 1] == "yes"
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    assert SERVICES["redis"]["volumes"] == ["runs:/data"]


@pytest.mark.parametrize("name", OURS)
def test_commands_exist(name: str) -> None:
    assert CliRunner().invoke(cli, [*SERVICES[name]["command"], "--help"]).exit_code == 0


@pytest.mark.parametrize("name", OURS)
def test_our_services_know_only_settings_that_exist(name: str) -> None:
    known = {f"ASSAY_{field.upper()}" for field in Settings.model_fields}
    assert set(SERVICES[name]["environment"]) <= known


@pytest.mark.parametrize(("name", "needs_s"), [("api", "inline_wait_s"), ("worker", "worker_grace_s")])
def test_grace_is_longer_than_what_is_under_way(name: str, needs_s: str) -> None:
    grace_s = int(SERVICES[name]["stop_grace_period"].removesuffix("s"))
    assert grace_s > getattr(EMPTY_SETTINGS, needs_s) + 5


def test_prometheus_asks_both_where_they_answer() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text(encoding="utf-8"))
    targets = {
        tuple(job["dns_sd_configs"][0]["names"]): job["dns_sd_configs"][0]["port"] for job in config["scrape_configs"]
    }
    assert targets == {("api",): EMPTY_SETTINGS.port, ("worker",): EMPTY_SETTINGS.worker_metrics_port}
    assert str(EMPTY_SETTINGS.worker_metrics_port) in str(SERVICES["worker"]["healthcheck"])


def test_image_is_locked_and_in_stages() -> None:
    assert len(instructions("FROM")) == 2
    install = next(line for line in instructions("RUN") if "install" in line)
    assert "--no-deps" in install
    assert "--require-hashes" in install
    assert "--only-binary" in install


def test_image_does_not_run_as_root() -> None:
    (user,) = instructions("USER")
    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) > 0


@pytest.mark.parametrize("name", ["RUN", "CMD", "ENTRYPOINT"])
def test_image_uses_the_exec_form_everywhere(name: str) -> None:
    found = instructions(name)
    assert found
    assert all(line.startswith("[") for line in found)


def test_base_is_pinned_by_a_tag_that_names_version_and_system() -> None:
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(.*)$", DOCKERFILE, flags=re.MULTILINE)
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?", base)


def test_only_what_the_image_needs_reaches_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert lines[0] == "*"
    for source in re.findall(r"^COPY (?!--from)(\S+)", DOCKERFILE, flags=re.MULTILINE):
        assert f"!{source}" in lines
        assert (ROOT / source).exists()


def test_entry_point_of_the_image_is_the_command() -> None:
    (line,) = instructions("ENTRYPOINT")
    _python, *arguments = json.loads(line)
    shown = subprocess.run(
        [sys.executable, *arguments, "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("assay ")


def test_example_environment_names_only_what_is_read() -> None:
    known = {f"ASSAY_{field.upper()}" for field in Settings.model_fields}
    names = re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert names
    assert {name for name in names if name.startswith("ASSAY_")} <= known
