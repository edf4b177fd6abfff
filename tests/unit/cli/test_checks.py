"""What `assay doctor` makes of what a Redis says of itself, and of settings."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.adapters.redis_server import RedisServer
from app.cli import checks, judge_choice
from app.cli.checks import _age, _eviction, _persistence, judge, look, scorers
from app.cli.finding import Level
from app.settings import Settings
from tests.unit.definitions import CALM


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("6.2.0", Level.OK),
        ("7.2.4", Level.OK),
        ("10.0.1", Level.OK),
        ("6.0.16", Level.FAIL),
        ("5.0", Level.FAIL),
        ("?", Level.FAIL),
    ],
)
def test_age(version: str, level: Level) -> None:
    assert _age(RedisServer.of({"redis_version": version}), "ASSAY_REDIS_URL").level is level


@pytest.mark.parametrize(
    ("info", "level"),
    [
        ({"maxmemory_policy": "noeviction", "maxmemory": 0}, Level.OK),
        ({"maxmemory_policy": "noeviction", "maxmemory": 1_000_000}, Level.OK),
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": 0}, Level.WARN),
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": 1_000_000}, Level.FAIL),
        ({"maxmemory_policy": "volatile-ttl", "maxmemory": 1_000_000}, Level.FAIL),
        ({}, Level.WARN),
    ],
)
def test_eviction(info: dict[str, Any], level: Level) -> None:
    finding = _eviction(RedisServer.of(info))
    assert finding.level is level
    assert level is Level.OK or "noeviction" in finding.detail


@pytest.mark.parametrize(("info", "level"), [({"aof_enabled": 1}, Level.OK), ({"aof_enabled": 0}, Level.WARN)])
def test_persistence(info: dict[str, Any], level: Level) -> None:
    assert _persistence(RedisServer.of(info)).level is level


def test_no_judge_at_all_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_choice, "can_serve", lambda: False)
    (finding,) = asyncio.run(judge(Settings(_env_file=None), {}))  # type: ignore[call-arg]
    assert finding.level is Level.FAIL
    assert "ASSAY_JUDGE_MODEL" in finding.detail


def test_a_wrong_models_file_is_told_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('[[models]]\nid = "no slash"\nprice = 3\n', encoding="utf-8")
    found = asyncio.run(judge(Settings(_env_file=None, models_file=path), {}))  # type: ignore[call-arg]
    assert len(found) == 2
    assert {finding.level for finding in found} == {Level.FAIL}


def test_scorers_of_files_are_counted_and_their_faults_told(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, scorers_dir=tmp_path)  # type: ignore[call-arg]
    (tmp_path / "calm.json").write_text(json.dumps(CALM), encoding="utf-8")
    (finding,) = scorers(settings)
    assert finding.level is Level.OK
    assert re.fullmatch(r"\d+ builtin, 1 file", finding.detail)
    (tmp_path / "calm.json").write_text(json.dumps({**CALM, "id": "", "version": ""}), encoding="utf-8")
    found = scorers(settings)
    assert [finding.level for finding in found] == [Level.FAIL, Level.FAIL]
    assert "calm.json: #/id: " in found[0].detail


def test_unreadable_settings_are_told_and_nothing_else_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_PORT", "eighty")
    monkeypatch.setenv("ASSAY_WORKERS", "-1")
    monkeypatch.delattr(checks, "service")
    found = asyncio.run(look())
    assert [(finding.level, finding.name) for finding in found] == [
        (Level.OK, "versions"),
        (Level.FAIL, "settings"),
        (Level.FAIL, "settings"),
    ]
