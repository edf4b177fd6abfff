"""A Redis that may lose runs is refused at the start, plainly; one that is only ill prepared is told of."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey
from app.adapters.redis_client import connect
from app.adapters.redis_server import refuse_unfit
from app.settings import SettingsError
from tests.integration.service import ROOT, Service, free_port

COMMANDS = {
    "serve": ("app.cli", "serve"),
    "worker": ("app.cli", "worker"),
    "up": ("app.cli", "up"),
    "python -m worker": ("worker",),
}


@pytest.fixture
def evicting(valkey_url: str) -> Iterator[redis.Redis]:
    """A server that drops keys when its memory is full; the session's others get it back as it was."""
    with redis.Redis.from_url(valkey_url) as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        yield client
        client.config_set("maxmemory", "0")
        client.config_set("maxmemory-policy", "noeviction")


def started(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that does not start, until it has ended."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    return subprocess.run(
        [sys.executable, "-m", *COMMANDS[command]],
        cwd=folder,
        env=kept
        | {"PYTHONPATH": str(ROOT), "ASSAY_PORT": str(free_port())}
        | {"ASSAY_JUDGE_MODEL": "stub/judge", "ASSAY_JUDGE_BASE_URL": "http://127.0.0.1:1/v1"}
        | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_evicts_stops_the_start_with_one_line(
    evicting: redis.Redis, valkey_url: str, tmp_path: Path, command: str
) -> None:
    ended = started(command, tmp_path, ASSAY_REDIS_URL=valkey_url)
    assert ended.returncode == 2
    said = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert len(said) == 1, ended.stderr
    assert "ASSAY_REDIS_URL" in said[0]
    assert "maxmemory-policy" in said[0]
    assert "noeviction" in said[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_faulty_scorer_stops_the_start_with_its_file_and_place(valkey_url: str, tmp_path: Path, command: str) -> None:
    (tmp_path / "calm.json").write_text('{"id": "calm", "direction": "sideways"}')
    faults = {"#/version", "#/description", "#/direction", "#/analyze", "#/score"}
    ended = started(command, tmp_path, ASSAY_REDIS_URL=valkey_url, ASSAY_SCORERS_DIR=str(tmp_path))
    assert ended.returncode == 2
    told = re.findall(r"ASSAY_SCORERS_DIR: calm\.json: (#/\w+): .+", ended.stderr)
    assert set(told) == faults
    assert len(told) == len(faults)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-ttl"])
@pytest.mark.anyio
async def test_every_policy_that_evicts_is_refused(evicting: redis.Redis, valkey_url: str, policy: str) -> None:
    evicting.config_set("maxmemory-policy", policy)
    async with connect(valkey_url) as client:
        with pytest.raises(SettingsError, match=policy):
            await refuse_unfit(client)
        evicting.config_set("maxmemory", "0")
        await refuse_unfit(client)
        evicting.config_set("maxmemory", "100mb")
        evicting.config_set("maxmemory-policy", "noeviction")
        await refuse_unfit(client)


def test_what_would_evict_with_a_limit_is_worth_a_warning(
    evicting: redis.Redis, valkey_server: EmbeddedValkey, tmp_path: Path
) -> None:
    evicting.config_set("maxmemory", "0")
    with Service(valkey_server.url, tmp_path) as service:
        assert service.said().count('"redis_may_evict"') == 2


@pytest.mark.anyio
@pytest.mark.parametrize(("version", "fits"), [("6.0.16", False), ("5.0.7", False), ("6.2.0", True), ("7.4.1", True)])
async def test_an_old_server_is_refused(version: str, fits: bool) -> None:
    class Server:
        async def info(self) -> dict[str, object]:
            return {"redis_version": version, "maxmemory_policy": "noeviction", "maxmemory": 0}

    if fits:
        await refuse_unfit(Server())  # type: ignore[arg-type]
        return
    with pytest.raises(SettingsError, match="too old"):
        await refuse_unfit(Server())  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_a_server_that_is_away_is_no_reason_not_to_start() -> None:
    async with connect("unix:///nowhere/valkey.sock") as client:
        await refuse_unfit(client)
