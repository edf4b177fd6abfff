"""Worker processes: how they stop, how they die, and what RQ's own command line says of them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from app.domain.request import Priority
from tests.integration.worker.processes import WorkerProcesses
from tests.integration.worker.running import enqueue_now

LINE = "rq:queue:assay-normal"
# RQ's rule: signals within a second are one.
APART_S = 1.2
HELD = ["hold0001", "hold0002", "hold0003"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_runs_end_and_takes_no_more(
    client: redis.Redis, processes: WorkerProcesses, valkey_url: str, number: signal.Signals
) -> None:
    held = enqueue_now(valkey_url, *HELD)
    process = processes.start(concurrency=3)
    processes.until(lambda: len(processes.notes("begun")) == 3)
    enqueue_now(valkey_url, "later")
    process.send_signal(number)
    # Twice at once is what a terminal and a parent do together.
    process.send_signal(number)
    processes.until(lambda: b"worker_stopping" in processes.said())
    processes.release()
    assert process.wait(20) == 0
    assert sorted(processes.notes("ended")) == held
    assert client.llen(LINE) == 1
    assert client.zcard("rq:wip:assay-normal") == 0
    assert processes.registered() == 0


def test_what_outlives_the_grace_is_given_back_at_once(
    client: redis.Redis, processes: WorkerProcesses, valkey_url: str
) -> None:
    held = enqueue_now(valkey_url, *HELD)
    process = processes.start(concurrency=3, grace_s=0.1)
    processes.until(lambda: len(processes.notes("begun")) == 3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert client.llen(LINE) == 3
    assert client.zcard("rq:wip:assay-normal") == 0
    processes.release()
    processes.start()
    processes.until(lambda: sorted(processes.notes("ended")) == held)


def test_a_second_signal_ends_the_grace(client: redis.Redis, processes: WorkerProcesses, valkey_url: str) -> None:
    enqueue_now(valkey_url, *HELD)
    process = processes.start(concurrency=3, grace_s=600)
    processes.until(lambda: len(processes.notes("begun")) == 3)
    process.send_signal(signal.SIGTERM)
    processes.until(lambda: b"worker_stopping" in processes.said())
    time.sleep(APART_S)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert client.llen(LINE) == 3
    assert processes.notes("ended") == []


def test_rq_info_tells_what_is_going_on(client: redis.Redis, processes: WorkerProcesses, valkey_url: str) -> None:
    enqueue_now(valkey_url, *HELD)
    enqueue_now(valkey_url, "done1", "done2", priority=Priority.HIGH)
    processes.start(concurrency=3)
    processes.until(lambda: len(processes.notes("begun")) == 5)
    processes.until(lambda: client.zcard("rq:wip:assay-high") == 0)
    enqueue_now(valkey_url, "wait1", "wait2", priority=Priority.BULK)
    told = rq(valkey_url, "info", "--raw")
    assert "queue assay-high 0, 0 executing, 0 finished, 0 failed" in told
    assert "queue assay-normal 0, 3 executing, 0 finished, 0 failed" in told
    assert "queue assay-bulk 2, 0 executing, 0 finished, 0 failed" in told
    (worker,) = [line for line in told.splitlines() if line.startswith("worker ")]
    assert " busy assay-high, assay-normal, assay-bulk. jobs: 2 finished, 0 failed" in worker
    processes.release()
    processes.until(lambda: len(processes.notes("ended")) == 7)
    processes.until(lambda: " idle assay-high" in rq(valkey_url, "info", "--raw"))


def rq(url: str, command: str, *options: str) -> str:
    program = Path(sys.executable).with_name("rq")
    return subprocess.run(
        [program, command, "--url", url, *options], capture_output=True, text=True, check=True, timeout=20
    ).stdout


@pytest.mark.slow
def test_the_jobs_of_a_killed_worker_run_elsewhere_within_half_a_minute(
    client: redis.Redis, processes: WorkerProcesses, valkey_url: str
) -> None:
    held = enqueue_now(valkey_url, *HELD)
    doomed = processes.start(concurrency=3)
    processes.until(lambda: len(processes.notes("begun")) == 3)
    processes.start()
    doomed.kill()
    processes.until(lambda: len(processes.notes("begun")) == 6, patience_s=30)
    processes.release()
    processes.until(lambda: sorted(processes.notes("ended")) == held)
    processes.until(lambda: client.zcard("rq:wip:assay-normal") == 0)
    processes.until(lambda: processes.registered() == 1)
