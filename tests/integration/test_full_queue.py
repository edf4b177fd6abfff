"""A queue at its limit refuses plainly and keeps nothing of what it refuses."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import redis

from tests.integration.runs.test_scores import unique
from tests.integration.service import Service

LIMIT = 90
AT_ONCE = 16
POSTS = 300


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/scorers/bias/runs", lambda: {"output": unique(), "mode": "queued"}),
        ("/v1/runs", lambda: {"output": unique(), "mode": "queued", "scorers": ["bias", "toxicity"]}),
    ],
)
def test_a_full_queue_refuses_and_stores_nothing(
    valkey_url: str, tmp_path: Path, path: str, body: Callable[[], dict[str, object]]
) -> None:
    with (
        Service(valkey_url, tmp_path, workers=0, apis=2, queue_limit=str(LIMIT)) as service,
        redis.Redis.from_url(valkey_url) as client,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        answers = list(pool.map(lambda turn: service.clients[turn % 2].post(path, json=body()), range(POSTS)))
        refused = [answer for answer in answers if answer.status_code == 503]
        accepted = [answer for answer in answers if answer.status_code == 202]
        runs = list(itertools.chain.from_iterable(answer.json().get("runs", [answer.json()]) for answer in accepted))
        assert len(refused) + len(accepted) == POSTS
        for answer in refused:
            assert answer.json()["code"] == "capacity_reduced"
            assert int(answer.headers["Retry-After"]) > 0
        # Two scorers' runs find room together or not at all.
        each = len(runs) // len(accepted)
        assert LIMIT - each < len(runs) <= LIMIT
        assert {name.rsplit(b":", 1)[1].decode() for name in client.scan_iter("assay:*:run:*")} == {
            run["runId"] for run in runs
        }
        assert len(list(client.scan_iter("rq:job:*"))) == len(runs)
        assert is_answered(service, runs[0]["runId"])


def test_no_wait_leads_past_a_full_queue(valkey_url: str, tmp_path: Path) -> None:
    """An inline request with a short wait is a queued one by another name."""
    with (
        Service(valkey_url, tmp_path, workers=0, queue_limit="1") as service,
        redis.Redis.from_url(valkey_url) as client,
    ):
        first = service.score(output=unique(), mode="queued").json()["runId"]
        for wait in ("wait=0", "wait=1"):
            answer = service.score(output=unique(), headers={"Prefer": wait})
            assert (answer.status_code, answer.json()["code"]) == (503, "capacity_reduced")
        assert [name.rsplit(b":", 1)[1].decode() for name in client.scan_iter("assay:*:run:*")] == [first]


def is_answered(service: Service, run_id: str) -> bool:
    """Whether reads and inline runs go on while nothing is taken into the queue."""
    seen: httpx.Response = service.client.get(f"/v1/runs/{run_id}")
    return seen.status_code == 200 and service.score(output=unique()).status_code == 200
