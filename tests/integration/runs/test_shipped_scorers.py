"""The definitions of deploy/scorers as an operator uses them: from the folder, on real processes, with a stub judge."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.integration.service import Service

FOLDER = Path(__file__).parents[3] / "deploy/scorers"
# The stub points at opinions, takes the first label where no word calls for another, and the lowest numbers.
CASES: dict[str, tuple[dict[str, Any], float, int]] = {
    "brand-safety": ({"output": "The sun is out. Nobody minds."}, 0.0, 1),
    "medical-claims": ({"output": "It rained. Honey is the best remedy.", "context": ["Honey is sweet."]}, 0.0, 3),
    "support-tone": ({"output": "We are on it.", "input": "Where is my parcel?"}, 1.0, 2),
}
DIFFERING = {"runId", "createdAt", "startedAt", "completedAt", "deadlineAt", "expiresAt", "timings", "history"}


class WithScorers(Service):
    """A service with the folder of definitions."""

    def environment(self, port: int | None = None) -> dict[str, str]:
        return {**super().environment(port), "ASSAY_SCORERS_DIR": str(FOLDER)}


@pytest.fixture(scope="module")
def service(valkey_server: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    with WithScorers(valkey_server.url, tmp_path_factory.mktemp("scorers")) as service:
        yield service


def test_all_of_them_are_served(service: Service) -> None:
    served = {item["id"]: item for item in service.client.get("/v1/scorers").json()["items"]}
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(CASES) == served.keys() & CASES.keys()
    assert {served[name]["origin"] for name in CASES} == {"file"}


@pytest.mark.parametrize("name", CASES)
def test_inline_and_queued_agree(service: Service, name: str) -> None:
    body, score, calls = CASES[name]
    answer = service.score(name, **body, cache="off")
    assert answer.status_code == 200, answer.text
    inline = answer.json()
    assert (inline["status"], inline["score"], inline["error"]) == ("completed", score, None)
    assert inline["usage"]["judgeCalls"] == calls
    queued = service.run(service.score(name, **body, cache="off", mode="queued").json()["runId"])
    assert {key: queued[key] for key in queued.keys() - DIFFERING} == {
        key: inline[key] for key in inline.keys() - DIFFERING
    }
    events = service.client.get(f"/v1/runs/{queued['runId']}/events").text
    assert '"step":"analyze"' in events


def test_what_is_kept_of_a_result_quotes_nothing(service: Service) -> None:
    body, _, _ = CASES["medical-claims"]
    run_id = service.score("medical-claims", **body, store="result", mode="queued").json()["runId"]
    kept = service.run(run_id)
    assert kept["status"] == "completed"
    assert "remedy" not in str(kept)
    assert kept["analyzeStepResult"]["verdicts"] == [
        {"reason": None, "verdict": "backed", "text": "", "span": {"start": 11, "end": 36}}
    ]
