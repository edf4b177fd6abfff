"""What went wrong can be seen: recoveries are counted, and nobody has to guess that no worker is alive."""

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
        recovered = sum(samples(port, "assay_recoveries_total").values()) + sum(
            samples(service.port, "assay_recoveries_total").values()
        )
        assert recovered >= len(posted)
        assert samples(port, "assay_recoveries_total")['{reason="lease_expired"}'] == len(posted)
        assert samples(port, "assay_judge_breaker_state") == {'{model="stub/judge"}': 0.0}
