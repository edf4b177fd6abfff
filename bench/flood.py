"""A flood of queued POSTs into one API with one worker: how fast, how big, and how quick GETs stay meanwhile.

    python -m bench.flood [--runs 20000] [--connections 64]

GETs are sent by a process of their own, one every 10 ms, so that they wait for the service and not for the flood.
"""

import argparse
import asyncio
import http.client
import itertools
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Event
from pathlib import Path

import psutil

from app.adapters.embedded_valkey import start_valkey
from app.adapters.redis_client import connect
from app.adapters.rq_queue import RqRunQueue
from bench.load import LoadResult, load, post
from tests.integration.service import Service

PATH = "/v1/scorers/bias/runs"
STEPS = (0.1, 0.5, 1.0)
GET_EVERY_S = 0.01
IDLE_S = 3.0
DRAIN_S = 10.0
_over: Event


def share_event(over: Event) -> None:
    """Keep the event in a process of the pool."""
    global _over  # noqa: PLW0603 - the way into a pool's process
    _over = over


def time_gets(port: int, path: str) -> list[float]:
    """Return the seconds of a GET every 10 ms until the event is set."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    seconds = []
    while not _over.is_set():
        began = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        seconds.append(time.perf_counter() - began)
        if answer.status != 200:
            raise RuntimeError(f"GET answered {answer.status}")
        time.sleep(max(GET_EVERY_S - seconds[-1], 0))
    return seconds


def shown(seconds: list[float]) -> str:
    """Return median, 99th percentile and maximum in milliseconds."""
    ordered = [1000 * second for second in sorted(seconds)]
    p99 = ordered[int(0.99 * len(ordered))]
    return f"p50 {statistics.median(ordered):6.1f} ms  p99 {p99:6.1f} ms  max {ordered[-1]:6.1f} ms  (n={len(ordered)})"


def megabytes(service: Service) -> float:
    """Return the API's resident memory."""
    return psutil.Process(service.api.child.pid).memory_info().rss / 1e6


def posts(port: int, first: int, count: int) -> Iterator[bytes]:
    """Return so many different queued POSTs."""
    for number in range(first, first + count):
        body = f'{{"output": "I think stadium {number} is ugly. It opens in May.", "mode": "queued"}}'
        yield post("127.0.0.1", port, PATH, body.encode())


def flood(service: Service, runs: int, connections: int) -> LoadResult:
    """Send the flood in steps and print each."""
    total = LoadResult()
    print(f"{'accepted':>9} {'a second':>9} {'API MB':>8}")
    print(f"{0:9} {'':9} {megabytes(service):8.1f}")
    sent = 0
    for share in STEPS:
        count = int(share * runs) - sent
        step = asyncio.run(load("127.0.0.1", service.port, connections, posts(service.port, sent, count)))
        sent += count
        total.seconds += step.seconds
        total.latencies += step.latencies
        for status, times in step.statuses.items():
            total.statuses[status] = total.statuses.get(status, 0) + times
        print(f"{sent:9} {step.rate:9.0f} {megabytes(service):8.1f}", flush=True)
    return total


async def waiting(url: str) -> int:
    """Return how many jobs wait."""
    async with connect(url) as client:
        return sum((await RqRunQueue(client, limit=1).depth()).by_priority.values())


def drain_rate(url: str) -> float:
    """Return how many jobs a second the worker takes, once nothing else is asked of the service."""
    before, began = asyncio.run(waiting(url)), time.perf_counter()
    time.sleep(DRAIN_S)
    return (before - asyncio.run(waiting(url))) / (time.perf_counter() - began)


def main() -> None:
    """Print what the flood did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=64)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        valkey = start_valkey(Path(folder) / "valkey")
        try:
            with Service(valkey.url, Path(folder), workers=1, delay_ms=50) as service:
                measure(service, valkey.url, chosen.runs, chosen.connections)
        finally:
            valkey.stop()


def measure(service: Service, url: str, runs: int, connections: int) -> None:
    """Time GETs of an ended run without and with the flood, then the worker alone."""
    ended = service.score(output="I think the old stadium was fine.").raise_for_status().headers["Location"]
    over = multiprocessing.Event()
    with ProcessPoolExecutor(1, initializer=share_event, initargs=(over,)) as pool:
        idle = pool.submit(time_gets, service.port, ended)
        time.sleep(IDLE_S)
        over.set()
        print(f"GET, idle          {shown(idle.result())}")
        over.clear()
        busy = pool.submit(time_gets, service.port, ended)
        result = flood(service, runs, connections)
        over.set()
        print(f"GET, in the flood  {shown(busy.result())}")
    print(f"accepted {result.rate:.0f} a second, answers {dict(itertools.islice(result.statuses.items(), 5))}")
    print(f"worker alone: {drain_rate(url):.0f} runs a second, API {megabytes(service):.1f} MB after it")


if __name__ == "__main__":
    main()
