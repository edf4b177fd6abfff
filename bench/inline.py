"""Inline runs against a judge of 50 ms: throughput beside the ideal, CPU a run, and cached POSTs beside a bare echo.

`python -m bench.inline [--runs 500] [--concurrency 50] [--delay-ms 50] [--rounds 3]`. Everything runs on this machine;
compare the ratios of one run, not figures of two.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from app.adapters.embedded_valkey import start_valkey
from bench.load import LoadResult, load, post
from tests.integration.service import Process, Service, free_port

PATH = "/v1/scorers/bias/runs"
CACHED_REQUESTS = 3000


def text(number: int) -> str:
    """A text of three opinions, one of them biased by the stub's rules: three judge calls."""
    return (
        f"The north village of valley {number} is always inferior. Its market is the best in the land. "
        "Everybody should visit the old mill."
    )


def body(number: int) -> bytes:
    """One request body."""
    return json.dumps({"output": text(number)}).encode()


def cpu_seconds(process: Process) -> float:
    """User and system time of a process so far."""
    times = psutil.Process(process.child.pid).cpu_times()
    return times.user + times.system


def measured(process: Process, port: int, concurrency: int, requests: Iterator[bytes]) -> tuple[LoadResult, float]:
    """Run a load and return it with the CPU milliseconds a request that the process took."""
    before = cpu_seconds(process)
    result = asyncio.run(load("127.0.0.1", port, concurrency, requests))
    return result, (cpu_seconds(process) - before) * 1000 / len(result.latencies)


def inline_round(service: Service, numbers: Iterator[int], runs: int, concurrency: int) -> tuple[LoadResult, float]:
    """Score new texts inline."""
    requests = (post("127.0.0.1", service.port, PATH, body(next(numbers))) for _ in range(runs))
    return measured(service.api, service.port, concurrency, requests)


def report(name: str, result: LoadResult, cpu_ms: float) -> None:
    """Print one line."""
    print(
        f"{name:<28} {result.rate:8.1f}/s  cpu {cpu_ms:6.3f} ms  p50 {result.percentile(0.5):7.1f} ms  "
        f"p99 {result.percentile(0.99):7.1f} ms  statuses {result.statuses}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.inline", description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--delay-ms", type=float, default=50.0)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        valkey = start_valkey(Path(folder) / "data")
        try:
            compare(chosen, valkey.url, Path(folder), numbers)
        finally:
            valkey.stop()


def compare(chosen: argparse.Namespace, redis_url: str, folder: Path, numbers: Iterator[int]) -> None:
    """Interleave the rounds and print their medians."""
    port = free_port()
    with Service(redis_url, folder, workers=0, delay_ms=chosen.delay_ms) as service:
        echo = Process([sys.executable, "-m", "bench.echo", str(port)], service.environment(), folder / "echo.log")
        try:
            inline_round(service, numbers, chosen.concurrency, chosen.concurrency)
            wait_for(port)
            ratios: dict[str, list[float]] = {"inline": [], "cached": []}
            for _ in range(chosen.rounds):
                one_round(chosen, service, echo, port, numbers, ratios)
        finally:
            echo.stop()
    ideal = chosen.concurrency / (3 * chosen.delay_ms / 1000) if chosen.delay_ms else float("inf")
    print(f"median inline rate / ideal ({ideal:.0f}/s): {statistics.median(ratios['inline']) / ideal:.3f}")
    print(f"median cached POST rate / bare FastAPI echo rate: {statistics.median(ratios['cached']):.3f}")


def one_round(
    chosen: argparse.Namespace,
    service: Service,
    echo: Process,
    port: int,
    numbers: Iterator[int],
    ratios: dict[str, list[float]],
) -> None:
    """Measure inline runs, then cached ones and the echo on equal requests."""
    result, cpu_ms = inline_round(service, numbers, chosen.runs, chosen.concurrency)
    report("inline, judge asked", result, cpu_ms)
    ratios["inline"].append(result.rate)
    same = itertools.repeat(post("127.0.0.1", service.port, PATH, body(0)), CACHED_REQUESTS)
    cached, cpu_ms = measured(service.api, service.port, chosen.concurrency, same)
    report("inline, all cached", cached, cpu_ms)
    same = itertools.repeat(post("127.0.0.1", port, "/echo", body(0)), CACHED_REQUESTS)
    echoed, cpu_ms = measured(echo, port, chosen.concurrency, same)
    report("bare FastAPI echo", echoed, cpu_ms)
    ratios["cached"].append(cached.rate / echoed.rate)


def wait_for(port: int) -> None:
    """Wait until the echo answers."""
    request = post("127.0.0.1", port, "/echo", body(0))
    for _ in range(200):
        try:
            asyncio.run(load("127.0.0.1", port, 1, iter([request])))
        except OSError:
            asyncio.run(asyncio.sleep(0.05))
        else:
            return
    raise RuntimeError("the echo does not answer")


if __name__ == "__main__":
    main()
