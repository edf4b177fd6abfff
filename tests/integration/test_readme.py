"""Every request of the README works as printed, in the order in which it is printed."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.integration.service import Service

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "http://localhost:8000"
PATIENCE_S = 120.0


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


CURLS = [block for block in blocks("sh") if block.startswith("curl ")]


@pytest.fixture(scope="module")
def service(valkey_server: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(valkey_server.url, tmp_path_factory.mktemp("service")) as service:  # type: ignore[attr-defined]
        yield service


def here(text: str, service: Service) -> str:
    assert ADDRESS in text
    return text.replace(ADDRESS, f"http://127.0.0.1:{service.port}")


def test_every_curl_line_works_in_order(service: Service) -> None:
    assert len(CURLS) >= 9
    for line in CURLS:
        command = here(line, service).replace("curl ", "curl -sS --fail-with-body ", 1)
        done = subprocess.run(["sh", "-c", command], check=False, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_the_first_answer_has_the_shape_that_is_shown(service: Service) -> None:
    shown = orjson.loads(blocks("json")[0])
    answer = subprocess.run(["sh", "-c", here(CURLS[0], service)], capture_output=True, check=True, timeout=PATIENCE_S)
    run = orjson.loads(answer.stdout)
    assert shown.keys() <= run.keys()
    assert shown["usage"].keys() <= run["usage"].keys()
    (verdict,) = shown["analyzeStepResult"]["results"]
    assert run["analyzeStepResult"]["results"], "the stub found no opinion"
    assert verdict.keys() == run["analyzeStepResult"]["results"][0].keys()
    text = orjson.loads(re.search(r"-d '(.*?)'", CURLS[0]).group(1))["output"]  # type: ignore[union-attr]
    assert text[verdict["span"]["start"] : verdict["span"]["end"]] == verdict["opinion"]


@pytest.mark.parametrize(
    ("language", "file", "command"),
    [
        ("ts", "score.mjs", ["node", "score.mjs"]),
        ("java", "Score.java", ["java", "Score.java"]),
        ("go", "score.go", ["go", "run", "score.go"]),
    ],
)
def test_clients_in_other_languages_work(
    service: Service, tmp_path: Path, language: str, file: str, command: list[str]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (block,) = blocks(language)
    (tmp_path / file).write_text(here(block, service), encoding="utf-8")
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
