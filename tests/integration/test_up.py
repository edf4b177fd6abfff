"""`assay up` with real processes: what it says, how it ends, and that nothing is left behind."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.faults.servers import Server
from tests.integration.cli.house import House
from tests.integration.cli.processes import alive, until
from tests.integration.service import free_port
from tests.stub_judge.process import StubProcess

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts processes by /proc")
BODY = {"output": "I think the new stadium is ugly. It opens in May."}


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProcess]:
    with StubProcess() as stub:
        yield stub


Make = Callable[..., House]


@pytest.fixture
def make(tmp_path: Path, stub: StubProcess) -> Iterator[Make]:
    """Return a maker of houses judged by the stub; they are ended afterwards."""
    houses: list[House] = []

    def make_house(environment: dict[str, str] | None = None, **settings: object) -> House:
        judge = {"judge_model": "stub/judge", "judge_base_url": stub.base_url}
        houses.append(House(tmp_path, environment, **(judge | settings)))
        return houses[-1]

    yield make_house
    for house in houses:
        house.__exit__(None, None, None)


def gone(pids: set[int]) -> None:
    asyncio.run(until(lambda: not any(alive(pid) for pid in pids)))


@needs_proc
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_serves_both_ways_and_ends_in_order(make: Make, how: signal.Signals) -> None:
    with make() as house, house.client() as client:
        inline = client.post("/v1/scorers/bias/runs", json=BODY)
        queued = client.post("/v1/scorers/bias/runs", json={**BODY, "mode": "queued"})
        ended = client.get(queued.headers["Location"], params={"wait": 20}).json()
        assert (inline.status_code, queued.status_code) == (200, 202)
        assert ended["score"] == inline.json()["score"]
        processes = house.descendants()
        assert set(house.pids().values()) < processes
        assert house.end(how) == 0
        gone(processes)
        assert "Traceback" not in house.printed()


@needs_proc
def test_a_killed_parent_leaves_no_orphan(make: Make) -> None:
    with make(workers=2) as house:
        processes = house.descendants()
        assert len(processes) >= 5  # API, two workers, Valkey and its guard
        house.end(signal.SIGKILL)
        gone(processes)


def test_runs_outlive_a_restart(make: Make) -> None:
    house = make()
    with house, house.client() as client:
        run = client.post("/v1/scorers/bias/runs", json=BODY).json()
        house.end(signal.SIGTERM)
        house.start()
        house.wait_for("Try it:")
        assert client.get(f"/v1/runs/{run['runId']}").json() == run


@pytest.mark.parametrize("name", ["API", "Worker"])
def test_a_process_that_dies_is_started_again_and_said_so(make: Make, name: str) -> None:
    with make() as house, house.client() as client:
        os.kill(house.pids()[name], signal.SIGKILL)
        house.wait_for("was ended by signal 9 (Killed); starting it again")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                answer = client.post("/v1/scorers/bias/runs", json={**BODY, "mode": "queued"})
                assert client.get(answer.headers["Location"], params={"wait": 20}).json()["status"] == "completed"
                break
            except (OSError, httpx.TransportError):
                time.sleep(0.05)
        else:
            pytest.fail(f"no run is completed after the {name} was ended")
        assert house.end(signal.SIGINT) == 0


@needs_proc
def test_valkey_that_dies_is_started_again_with_its_runs(make: Make) -> None:
    with make() as house, house.client() as client:
        run = client.post("/v1/scorers/bias/runs", json=BODY).json()
        for pid in house.descendants():
            if b"valkey-server" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                time.sleep(1.1)  # the append-only file is written every second
                os.kill(pid, signal.SIGKILL)
        house.wait_for("had ended and was started again")
        asyncio.run(until(lambda: client.get("/readyz").status_code == 200))
        assert client.get(f"/v1/runs/{run['runId']}").json()["status"] == "completed"
        assert house.end(signal.SIGINT) == 0


def test_a_redis_that_is_not_there_yet_is_told_of_and_waited_for(make: Make, tmp_path: Path) -> None:
    port = free_port()
    house = make(redis_url=f"redis://127.0.0.1:{port}")
    house.start()
    house.wait_for("is waited for; see ASSAY_REDIS_URL")
    with Server("valkey", tmp_path / "server", port=str(port)):
        house.wait_for("Try it:")
        assert house.end(signal.SIGINT) == 0


def test_the_line_to_try_works_when_pasted(make: Make) -> None:
    with make() as house:
        (line,) = re.findall(r"^curl .*$", house.printed(), re.MULTILINE)
        answer = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, timeout=60)
        assert '"status": "completed"' in answer.stdout
        assert "analyzePrompt" not in answer.stdout


def test_no_secret_is_in_a_command_line_or_printed(make: Make) -> None:
    with make(judge_api_key="canary-5521") as house:
        assert "canary-5521" not in house.printed()
        for pid in house.descendants():
            assert b"canary-5521" not in Path(f"/proc/{pid}/cmdline").read_bytes()


def ended_at_once(house: House) -> tuple[int, list[str]]:
    house.start()
    assert house.process is not None
    code = house.process.wait(60)
    return code, house.err.read_text(encoding="utf-8").splitlines()


def test_a_taken_port_is_one_line(make: Make) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        house = make(port=taken.getsockname()[1])
        code, lines = ended_at_once(house)
    assert code == 2
    assert len(lines) == 1
    assert "is taken" in lines[0]
    assert "ASSAY_PORT" in lines[0]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("port", "eighty"),
        ("host", "203.0.113.7"),
        ("log_level", "loud"),
        ("workers", "-1"),
        ("local_model", "/nonexistent.gguf"),
        ("data_dir", "/dev/null/data"),
        ("redis_url", "this is not one"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(make: Make, setting: str, value: str) -> None:
    judge = {"judge_model": "", "judge_base_url": ""} if setting == "local_model" else {}
    code, lines = ended_at_once(make(**(judge | {setting: value})))
    assert code == 2
    assert len(lines) == 1
    assert f"ASSAY_{setting.upper()}" in lines[0]


@pytest.mark.parametrize("setting", ["judge_base_url", "judge_model", "models_file"])
def test_a_setting_that_only_a_process_finds_wrong_ends_all(make: Make, setting: str) -> None:
    house = make(**{setting: "this is not one"})
    code, lines = ended_at_once(house)
    assert code == 2
    assert "does not start with these settings" in lines[0]
    assert any(f"ASSAY_{setting.upper()}" in line for line in lines[1:])
    assert not any("Traceback" in line for line in lines)


def test_a_providers_key_brings_its_model_and_says_so(make: Make) -> None:
    house = make({"MISTRAL_API_KEY": "canary-8812"}, judge_model="", judge_base_url="")
    with house:
        assert "MISTRAL_API_KEY is set, so mistral/" in house.printed()
        assert "canary-8812" not in house.printed()


def test_a_key_in_the_env_file_counts_too(make: Make, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GROQ_API_KEY=canary-9034\n", encoding="utf-8")
    with make(judge_model="", judge_base_url="") as house:
        assert "GROQ_API_KEY is set, so groq/" in house.printed()


@pytest.mark.local_model
def test_without_a_judge_the_demonstration_scores_end_to_end(make: Make) -> None:
    with make(judge_model="", judge_base_url="") as house, house.client() as client:
        assert "This judge is a demonstration." in house.printed()
        run = client.post("/v1/scorers/toxicity/runs", json=BODY).json()
        assert run["status"] == "completed"
        assert 0 <= run["score"] <= 1
        assert run["model"] == "local/smollm2-135m"
        assert run["usage"]["judgeCalls"] >= 1
        processes = house.descendants()
        assert house.end(signal.SIGINT) == 0
        gone(processes)
