"""Three scorers over one text, apart and together: judge calls, tokens and time, as the judge counts them.

`python -m bench.sharing [--texts 20] [--delay-ms 50]`. `cache` is off, so that only what one request shares is saved.
Ends with status 1 where together takes no fewer calls and tokens than apart, or is no faster than one after the other.
"""

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from app.adapters.embedded_valkey import start_valkey
from tests.integration.service import Service

SCORERS = ("faithfulness", "hallucination", "summarization")
FACTS = (
    "The tower has {n} floors; its walls are green.",
    "The keeper lives there alone.",
    "Foxes sing at night below the windows.",
    "Visitors bring cakes on Sundays; they leave before dusk.",
    "The bell was cast in the year {n}.",
    "Swallows nest under the roof.",
    "A narrow bridge leads across the moat.",
    "The garden grows pears, plums and herbs.",
)


class Cost(NamedTuple):
    """What one way of asking took: judge calls, tokens, and seconds until all runs ended."""

    calls: int
    tokens: int
    seconds: float


def body(number: int) -> dict[str, Any]:
    """A text of eleven claims, one of them without ground; its mark, which is no claim, is new each time."""
    facts = [fact.format(n=number) for fact in FACTS]
    return {
        "output": " ".join([*facts, "Carps swim in the moat.", f"Everybody should note {uuid.uuid4().hex}."]),
        "input": " ".join(facts * 2),
        "context": [" ".join(facts[part::4]) for part in range(4)],
        "cache": "off",
    }


def ended(service: Service, path: str, body: dict[str, Any], mode: str) -> None:
    """POST and wait until every run has completed."""
    reply = service.client.post(path, json={**body, "mode": mode}).raise_for_status().json()
    for run in reply.get("runs", [reply]):
        status = service.run(run["runId"])["status"] if mode == "queued" else run["status"]
        if status != "completed":
            raise RuntimeError(f"{run['scorerId']} ended as {status}")


def one_by_one(service: Service, body: dict[str, Any], mode: str) -> None:
    """A request a scorer, one after the other."""
    for scorer in SCORERS:
        ended(service, f"/v1/scorers/{scorer}/runs", body, mode)


def at_once(service: Service, body: dict[str, Any], mode: str) -> None:
    """A request a scorer, all at the same time."""
    with ThreadPoolExecutor(len(SCORERS)) as threads:
        asked = [threads.submit(ended, service, f"/v1/scorers/{scorer}/runs", body, mode) for scorer in SCORERS]
    for one in asked:
        one.result()


def together(service: Service, body: dict[str, Any], mode: str) -> None:
    """One request with all scorers."""
    ended(service, "/v1/runs", {**body, "scorers": SCORERS}, mode)


def cost(service: Service, ask: Callable[[Service, dict[str, Any], str], None], mode: str, texts: int) -> Cost:
    """Return what a text takes, on average over texts."""
    service.stub.reset()
    began = time.perf_counter()
    for number in range(texts):
        ask(service, body(number), mode)
    seconds = time.perf_counter() - began
    seen = service.stub.calls()
    return Cost(seen["total"] // texts, seen["tokens"] // texts, seconds / texts)


def faults(apart: Cost, shared: Cost) -> Iterator[str]:
    """Say what sharing did not save."""
    for name, before, after in zip(Cost._fields, apart, shared, strict=True):
        if after >= before:
            yield f"together takes no fewer {name}: {after:.3g} instead of {before:.3g}"


def compare(service: Service, mode: str, texts: int) -> list[str]:
    """Print a table of one mode, and return what is wrong with it."""
    together(service, body(texts), mode)  # warms up
    found = {ask: cost(service, ask, mode, texts) for ask in (one_by_one, at_once, together)}
    for ask, taken in found.items():
        share = taken.tokens / found[one_by_one].tokens
        print(
            f"{mode:<8} {ask.__name__.replace('_', ' '):<12} {taken.calls:3} calls  {taken.tokens:6} tokens "
            f"({share:4.0%})  {taken.seconds * 1000:6.0f} ms",
            flush=True,
        )
    return [f"{mode}: {fault}" for fault in faults(found[one_by_one], found[together])]


def main() -> None:
    """Measure, print, and fail where sharing saves nothing."""
    parser = argparse.ArgumentParser(prog="bench.sharing", description=__doc__)
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--delay-ms", type=float, default=50.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        valkey = start_valkey(Path(folder) / "data")
        try:
            with Service(valkey.url, Path(folder), delay_ms=chosen.delay_ms) as service:
                wrong = [fault for mode in ("inline", "queued") for fault in compare(service, mode, chosen.texts)]
        finally:
            valkey.stop()
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
