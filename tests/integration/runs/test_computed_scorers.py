"""Scorers that need no judge, on a service that has none: inline and queued, short texts and long ones."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey
from app.scorers import load_scorers
from tests.integration.service import Service

DIFFERING = {"runId", "createdAt", "startedAt", "completedAt", "deadlineAt", "expiresAt", "timings", "history"}
OPTIONS: dict[str, dict[str, Any]] = {"checks": {"includes": ["tea"], "jsonSchema": {}}}
COMPUTED = [scorer_id for scorer_id, scorer in load_scorers().items() if not scorer.uses_judge]
PAIRS = {
    "short": ("I love green tea. It is served at nine.", "We hate tea. Is it served at ten?"),
    "Chinese": ("我们明天去北京开会。", "会议后天在北京举行吗？"),
    "long": ("I love green tea, it is served at nine. " * 2_500, "We hate tea, it was served at ten. " * 2_800),
}


class Judgeless(Service):
    """A service without any judge; it is not ready for all, but serves what needs none."""

    def environment(self, port: int | None = None) -> dict[str, str]:
        return {name: value for name, value in super().environment(port).items() if "_JUDGE_" not in name}

    def _is_ready(self, client: httpx.Client) -> bool:
        try:
            return self._workers_alive(client.get("/readyz").json())
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def service(valkey_server: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    with Judgeless(valkey_server.url, tmp_path_factory.mktemp("judgeless")) as service:
        yield service


@pytest.mark.parametrize("texts", PAIRS.values(), ids=PAIRS.keys())
@pytest.mark.parametrize("scorer", COMPUTED)
def test_inline_and_queued_agree(service: Service, scorer: str, texts: tuple[str, str]) -> None:
    output, other = texts
    body = {"output": output, "input": other, "groundTruth": other, "options": OPTIONS.get(scorer, {})}
    answer = service.score(scorer, **body)
    assert answer.status_code == 200, answer.text
    inline = answer.json()
    assert inline["status"] == ("not_scorable" if scorer == "tone" and "北京" in output else "completed")
    accepted = service.score(scorer, **body, mode="queued")
    assert accepted.status_code == 202
    queued = service.run(accepted.json()["runId"])
    assert {k: v for k, v in queued.items() if k not in DIFFERING} == {
        k: v for k, v in inline.items() if k not in DIFFERING
    }


def test_a_long_pair_holds_nobody_up(service: Service) -> None:
    """Others are answered while a pair of 900,000 code points each is compared."""
    output, other = ("".join(f"word{n * step % 9_973} " for n in range(95_000)) for step in (7, 11))
    with ThreadPoolExecutor(1) as thread:
        long = thread.submit(service.score, "textual-difference", output=output, groundTruth=other)
        answered = 0
        while not long.done():
            assert service.client.get("/livez").status_code == 200
            answered += 1
    assert long.result().json()["status"] == "completed"
    assert answered > 3
