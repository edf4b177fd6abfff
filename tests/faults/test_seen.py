"""What went wrong can be seen: recoveries are counted, and nobody has to guess that no worker is alive."""

import json
import subprocess
import sys
from pathlib import Path

import httpx

from tests.faults.callers import Callers, until
from tests.faults.servers import Server
from tests.faults.test_kill import post_and_hang
from tests.integration.service import ROOT, Service, free_port

NO_WORKER = "no worker is alive"
# A worker counts as alive for its lease of 15 s.
GONE_S = 40.0


def samples(port: int, name: str) -> dict[str, float]:
    """Return a metric's samples by their labels, as a process's /metrics has them."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).raise_for_status().text
    lines = [line for line in text.splitlines() if line.startswith(name) and line[len(name)] in "{ "]
    return {line[len(name) :].rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def doctor(service: Service) -> str:
    """Return what `assay doctor` says."""
    command = [sys.executable, "-m", "app.cli", "doctor"]
    environment = service.environment() | {"COLUMNS": "200"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout


def told(service: Service, event: str) -> set[tuple[str, str]]:
    """Return the runs, and the reasons, of which the workers' log has this event."""
    lines = [line for line in (service.folder / "worker.log").read_text().splitlines() if line.startswith("{")]
    entries = [json.loads(line) for line in lines]
    return {(entry["run_id"], entry["reason"]) for entry in entries if entry["event"] == event}


def test_recoveries_are_counted_and_a_missing_worker_is_named(server: Server, tmp_path: Path) -> None:
    port = free_port()
    with Service(server.url, tmp_path, worker_metrics_port=str(port)) as service:
        callers = Callers(service.stub, service.clients)
        posted = post_and_hang(callers)
        service.workers[0].kill()

        def says_so() -> bool:
            ready = {check["name"]: check for check in service.client.get("/readyz").json()["checks"]}
            return NO_WORKER in ready["workers"]["detail"]

        until(says_so, "/readyz says that no worker is alive", GONE_S)
        assert NO_WORKER in doctor(service)
        until(lambda: samples(service.port, "assay_workers_alive") == {"": 0.0}, "the metric says so too")
        assert samples(service.port, "assay_queue_oldest_seconds")
        service.workers.append(service.start_worker())
        runs = callers.ends(posted)
        assert {run["status"] for run in runs} == {"completed"}
        assert NO_WORKER not in doctor(service)
        assert samples(port, "assay_run_attempts_sum") == {"": 2.0 * len(posted)}
        assert 0.0 <= samples(service.port, "assay_worker_heartbeat_age_seconds")[""] < GONE_S
        assert told(service, "run_recovered") >= {(one.run_id, "lease_expired") for one in posted}
        recovered = sum(samples(port, "assay_recoveries_total").values()) + sum(
            samples(service.port, "assay_recoveries_total").values()
        )
        assert recovered >= len(posted)
        assert samples(port, "assay_recoveries_total")['{reason="lease_expired"}'] == len(posted)
        assert samples(port, "assay_judge_breaker_state") == {'{model="stub/judge"}': 0.0}


def test_a_judge_that_is_broken_and_calls_that_wait_are_seen(server: Server, tmp_path: Path) -> None:
    port = free_port()
    model = '{model="stub/judge"}'
    with Service(
        server.url, tmp_path, worker_metrics_port=str(port), judge_max_in_flight_total="2", delay_ms=50
    ) as service:
        callers = Callers(service.stub, service.clients)
        service.stub.script({"status": 500, "body": {"error": {"message": "broken"}}, "times": None})
        posted = callers.post(10)
        until(lambda: samples(port, "assay_judge_breaker_state") == {model: 2.0}, "the breaker opens")
        assert samples(port, "assay_judge_breaker_openings_total")[model] >= 1
        service.stub.unscript()
        assert {run["status"] for run in callers.ends(posted)} == {"completed"}
        assert samples(port, "assay_judge_breaker_state") == {model: 0.0}
        waits = samples(port, "assay_judge_wait_seconds_count")
        for cause in ("breaker", "in_flight"):
            assert waits[f'{{cause="{cause}",model="stub/judge"}}'] > 0
