"""Callers of the queue: told apart from acceptance to hand-over and retry, and known to nobody."""

from pathlib import Path

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.integration.runs.test_scores import unique
from tests.integration.service import Service

KEY = "canary-of-a-key"
WAYS = ({}, {"Authorization": f"Bearer {KEY}"}, {"X-API-Key": KEY}, {"X-API-Key": "another"})


@pytest.fixture
def lone_api(valkey_server: EmbeddedValkey, tmp_path: Path) -> Service:
    """An API without a worker: what is queued stays in line."""
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    return Service(valkey_server.url, tmp_path, workers=0)


def callers(client: redis.Redis) -> dict[str, str]:
    """The caller of every job in line, by its run."""
    jobs = {name.decode(): client.hget(name, "caller") for name in client.scan_iter("rq:job:*")}
    return {name.removeprefix("rq:job:").rsplit("-", 1)[0]: (caller or b"").decode() for name, caller in jobs.items()}


def test_each_credential_is_a_caller_of_its_own_and_told_nobody(lone_api: Service) -> None:
    with lone_api as service, redis.Redis.from_url(service.redis_url) as client:
        answers = [
            service.score(output=unique(), mode="queued", headers=headers).raise_for_status()
            for headers in (*WAYS, *WAYS)
        ]
        known = callers(client)
        told = [known[answer.json()["runId"]] for answer in answers]
        assert told[:4] == told[4:]
        assert len(set(told)) == 4
        assert all(len(caller) == 16 for caller in told)
        shown = [answer.text + service.client.get(answer.headers["Location"]).text for answer in answers]
        kept = b"".join(name + (client.dump(name) or b"") for name in client.scan_iter())
    assert not any(caller in text for caller in told for text in shown)
    assert KEY.encode() not in kept


def test_hand_over_and_retry_keep_the_caller(lone_api: Service) -> None:
    headers = {"X-API-Key": KEY}
    with lone_api as service, redis.Redis.from_url(service.redis_url) as client:
        service.stub.script({"delay_ms": 5_000, "times": None})
        queued = service.score(output=unique(), mode="queued", headers=headers).json()["runId"]
        handed = service.score(output=unique(), headers=headers | {"Prefer": "wait=1"}).json()["runId"]
        service.client.post(f"/v1/runs/{queued}/cancel").raise_for_status()
        # Whoever asks for another try, the run is its caller's.
        service.client.post(f"/v1/runs/{queued}/retry").raise_for_status()
        known = callers(client)
    assert known[queued] == known[handed] != ""
