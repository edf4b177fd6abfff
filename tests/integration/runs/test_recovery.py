"""Runs that nobody works on are found: inline runs of a killed API, runs without a job, runs past their time."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from app.domain.run import Run, RunStatus
from tests.integration.runs.test_run_outages import score_and_kill
from tests.integration.runs.test_scores import unique
from tests.integration.service import LOOK_AGAIN_S, Service


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(LOOK_AGAIN_S)


def service_alone(valkey_url: str, folder: Path) -> Service:
    """A service without a worker."""
    return Service(valkey_url, folder, workers=0, run_lease_s="1")


def make_due(client: redis.Redis) -> None:
    """Have every run looked after at the next sweep."""
    for member in client.zrange("assay:due", 0, -1):
        client.zadd("assay:due", {member: 0}, xx=True)


def test_an_inline_run_of_a_killed_api_is_carried_on_by_a_worker(valkey_url: str, tmp_path: Path) -> None:
    with Service(valkey_url, tmp_path, run_lease_s="1") as service, redis.Redis.from_url(valkey_url) as client:
        service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "hang": True})
        with pytest.raises(Exception, match=r"disconnected|reset|closed"):
            score_and_kill(service, {"output": unique(), "runId": "killed-inline-run"})
        # Nobody asks for it again: the worker's own sweep finds it.
        until(lambda: client.zcard("assay:due") == 0, 60)
        service.api = service.start_api()
        service.wait_until_ready()
        run = service.run("killed-inline-run")
        assert (run["status"], run["score"], run["attempts"]) == ("completed", 0.3333, 2)
        assert [attempt["outcome"] for attempt in run["history"]] == ["lost", "completed"]
        names = [call["body"]["response_format"]["json_schema"]["name"] for call in service.stub.calls()["requests"]]
        assert names.count("bias_preprocess") == 1


@pytest.mark.parametrize("what", ["the whole job", "the job's hash", "the list"])
def test_a_run_whose_job_was_lost_gets_another(valkey_url: str, tmp_path: Path, what: str) -> None:
    with service_alone(valkey_url, tmp_path) as service, redis.Redis.from_url(valkey_url) as client:
        run_id = service.score(output=unique(), mode="queued").json()["runId"]
        if what != "the list":
            client.delete(*client.scan_iter(match=f"rq:job:{run_id}*"))
        if what != "the job's hash":
            client.delete("rq:queue:assay-normal")
        make_due(client)
        service.workers = [service.start_worker()]
        assert service.run(run_id, wait=30)["status"] == "completed"


def test_a_run_that_waits_in_line_gets_no_second_job(valkey_url: str, tmp_path: Path) -> None:
    with service_alone(valkey_url, tmp_path) as service, redis.Redis.from_url(valkey_url) as client:
        service.score(output=unique(), mode="queued")
        make_due(client)
        # It is put off when it was looked at.
        until(lambda: client.zrangebyscore("assay:due", 0, 1) == [])
        time.sleep(0.2)
        assert client.llen("rq:queue:assay-normal") == 1


def test_a_run_without_a_worker_is_ended_at_its_deadline_though_nobody_looks_at_it(
    valkey_url: str, tmp_path: Path
) -> None:
    with service_alone(valkey_url, tmp_path) as service, redis.Redis.from_url(valkey_url) as client:
        run_id = service.score(output=unique(), mode="queued", timeoutMs=1).json()["runId"]

        def is_ended() -> bool:
            make_due(client)
            return client.zcard("assay:due") == 0

        until(is_ended)
        (body,) = (client.hget(key, "body") for key in client.scan_iter(match=f"*:run:{run_id}"))
        assert Run.model_validate_json(body).status is RunStatus.EXPIRED
        assert 'assay_recoveries_total{reason="overdue"} 1.0' in service.client.get("/metrics").text
