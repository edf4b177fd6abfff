"""Redis away: the cache's outage is unseen, the run store's is a 503, and nothing hangs."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from tests.integration.runs.test_scores import unique
from tests.integration.service import LOOK_AGAIN_S, Service

HANG_S = 8.0


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    server = start_valkey(tmp_path / "valkey")
    yield server
    server.stop()


def process_id(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(client.info("server")["process_id"])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_runs_go_on_without_the_cache(
    valkey_url: str, own_valkey: EmbeddedValkey, tmp_path: Path, how: signal.Signals
) -> None:
    with Service(valkey_url, tmp_path, cache_redis_url=own_valkey.url) as service:
        output = unique()
        assert service.score(output=output).status_code == 200
        pid = process_id(own_valkey.url)
        os.kill(pid, how)
        try:
            inline = service.score(output=output)
            queued = service.run(service.score(output=output, mode="queued").json()["runId"])
        finally:
            if how is signal.SIGSTOP:
                os.kill(pid, signal.SIGCONT)
        assert (inline.status_code, inline.json()["score"]) == (200, 0.3333)
        assert (queued["status"], queued["score"]) == ("completed", 0.3333)
        assert service.judge_calls() == 9


def test_without_the_run_store_everything_says_so_and_comes_back(own_valkey: EmbeddedValkey, tmp_path: Path) -> None:
    with Service(own_valkey.url, tmp_path) as service:
        run_id = service.score(output=unique()).json()["runId"]
        pid = process_id(own_valkey.url)
        os.kill(pid, signal.SIGSTOP)
        try:
            for answer in (
                service.client.get(f"/v1/runs/{run_id}", timeout=HANG_S),
                service.score(output=unique()),
                service.score(output=unique(), mode="queued"),
                service.client.get("/v1/runs", timeout=HANG_S),
                service.client.delete(f"/v1/runs/{run_id}", timeout=HANG_S),
            ):
                assert (answer.status_code, answer.json()["code"]) == (503, "capacity_reduced")
                assert int(answer.headers["Retry-After"]) > 0
            assert service.client.get("/livez").status_code == 200
            assert service.client.get("/readyz").status_code == 503
        finally:
            os.kill(pid, signal.SIGCONT)
        service.wait_until_ready()
        assert service.score(output=unique()).status_code == 200
        accepted = service.score(output=unique(), mode="queued")
        assert service.run(accepted.json()["runId"], wait=30)["status"] == "completed"


def test_inline_runs_judged_while_the_store_is_away_are_written_when_it_is_back(
    own_valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    with Service(own_valkey.url, tmp_path, workers=0, delay_ms=300) as service:
        bodies = [{"output": unique(), "runId": f"outage-run-{number}"} for number in range(5)]
        with ThreadPoolExecutor(5) as threads:
            answers = [threads.submit(service.score, **body) for body in bodies]
            while service.judge_calls() < 15:
                time.sleep(LOOK_AGAIN_S)
            pid = process_id(own_valkey.url)
            os.kill(pid, signal.SIGSTOP)
            try:
                statuses = {answer.result().status_code for answer in answers}
            finally:
                os.kill(pid, signal.SIGCONT)
        assert statuses == {503}
        service.wait_until_ready()
        runs = [service.run(body["runId"]) for body in bodies]
        assert [(run["status"], run["score"]) for run in runs] == [("completed", 0.3333)] * 5
        assert service.judge_calls() == 15


def test_an_outage_longer_than_a_lease_is_no_loss_of_runs_whose_holder_lives(
    own_valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    with Service(own_valkey.url, tmp_path, workers=2, run_lease_s="1", delay_ms=1000) as service:
        run_ids = [service.score(output=unique(), mode="queued").json()["runId"] for _ in range(60)]
        bodies = [{"output": unique(), "runId": f"inline-run-{number}"} for number in range(5)]
        with ThreadPoolExecutor(5) as threads:
            inline = [threads.submit(service.score, **body) for body in bodies]
            while service.judge_calls() < 65:
                time.sleep(LOOK_AGAIN_S)
            pid = process_id(own_valkey.url)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(3)
            os.kill(pid, signal.SIGCONT)
            for answer in inline:
                answer.result()
        service.wait_until_ready()
        # A repeat asks for the run while its holder has not said yet that it lives.
        again = [service.score(**body).json() for body in bodies]
        runs = [service.run(run_id, wait=60) for run_id in run_ids]
        assert {(run["status"], run["attempts"]) for run in (*runs, *again)} == {("completed", 1)}


def test_an_inline_run_whose_process_was_killed_is_taken_over_by_its_repeat(valkey_url: str, tmp_path: Path) -> None:
    with Service(valkey_url, tmp_path, workers=0, run_lease_s="1") as service:
        service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "hang": True})
        body = {"output": unique(), "runId": "killed-inline-run"}
        with pytest.raises(Exception, match=r"disconnected|reset|closed"):
            score_and_kill(service, body)
        service.api = service.start_api()
        service.wait_until_ready()
        run = service.score(**body).json()
        assert (run["status"], run["score"], run["attempts"]) == ("completed", 0.3333, 2)
        names = [call["body"]["response_format"]["json_schema"]["name"] for call in service.stub.calls()["requests"]]
        assert names.count("bias_preprocess") == 1


def score_and_kill(service: Service, body: dict[str, str]) -> None:
    """POST a run and kill the API when the run's second step is under way."""

    def kill() -> None:
        while service.judge_calls() < 2:
            time.sleep(LOOK_AGAIN_S)
        service.api.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        service.score(**body)
    finally:
        killer.join()


def test_a_run_that_no_worker_takes_ends_at_its_deadline(valkey_url: str, tmp_path: Path) -> None:
    with Service(valkey_url, tmp_path, workers=0) as service:
        run_id = service.score(output=unique(), mode="queued", timeoutMs=1).json()["runId"]
        run = service.run(run_id, wait=30)
        assert (run["status"], run["error"]["code"], run["score"]) == ("expired", "run_expired", None)
        assert service.judge_calls() == 0


def test_a_full_queue_accepts_nothing(valkey_url: str, tmp_path: Path) -> None:
    with Service(valkey_url, tmp_path, workers=0, queue_limit="1") as service:
        output = unique()
        first = service.score(output=output, mode="queued", runId="accepted-run", headers={"Idempotency-Key": "first"})
        assert first.status_code == 202
        refused = service.score(output=unique(), mode="queued", runId="refused-run", headers={"Idempotency-Key": "k"})
        assert (refused.status_code, refused.json()["code"]) == (503, "capacity_reduced")
        assert int(refused.headers["Retry-After"]) > 0
        assert service.client.get("/v1/runs/refused-run").status_code == 404
        for repeat in ({"runId": "accepted-run"}, {}):
            headers = {} if repeat else {"Idempotency-Key": "first"}
            again = service.score(output=output, mode="queued", **repeat, headers=headers)
            assert (again.status_code, again.headers["Idempotent-Replayed"]) == (202, "true"), repeat
        assert len(service.client.get("/v1/runs").json()["items"]) == 1
        assert service.score(output=unique()).status_code == 200


@pytest.mark.slow
def test_runs_of_a_killed_worker_are_carried_on_by_another(valkey_url: str, tmp_path: Path) -> None:
    """Whether the job or the lease of the dead is over first, every run ends, its finished steps not paid for again."""
    with Service(valkey_url, tmp_path, workers=1) as service:
        service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "hang": True, "times": 10})
        run_ids = [service.score(output=unique(), mode="queued").json()["runId"] for _ in range(10)]
        while service.judge_calls() < 20:
            time.sleep(LOOK_AGAIN_S)
        service.workers[0].kill()
        service.workers[0] = service.start_worker()
        runs = [service.run(run_id, wait=60) for run_id in run_ids]
        assert [(run["status"], run["score"], run["attempts"]) for run in runs] == [("completed", 0.3333, 2)] * 10
        names = [call["body"]["response_format"]["json_schema"]["name"] for call in service.stub.calls()["requests"]]
        assert (names.count("bias_preprocess"), names.count("bias_analyze")) == (10, 20)
