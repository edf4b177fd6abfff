"""`python -m tests.faults.soak`: runs one soak, prints a line a minute and a report; exit code 1 when it failed."""

import argparse
import asyncio
import contextlib
import secrets
import sys
import tempfile
import time
from pathlib import Path

import redis

from tests.faults.servers import KINDS, Server
from tests.faults.soak.house import House
from tests.faults.soak.load import Load
from tests.faults.soak.look import Samples, take_sample
from tests.faults.soak.schedule import make_schedule
from tests.faults.soak.verdict import Verdict, judge_runs, left_behind, wait_for_ends

SAMPLE_S = 5.0
# Judges that were away, leases, and the five minutes of a run's own deadline.
END_PATIENCE_S = 330.0
SETTLE_S = 60.0
SHOWN_FAULTS = 40


def say(text: str) -> None:
    """Print at once, for those who follow along."""
    print(text, flush=True)


async def look_along(house: House, load: Load, samples: Samples, minute_s: float) -> None:
    """Take samples, and print a line a minute, until cancelled."""
    began = next_line = time.monotonic()
    while True:
        sample = await asyncio.to_thread(take_sample, house)
        if sample is not None:
            samples.taken.append(sample)
        if time.monotonic() >= next_line and sample is not None:
            next_line += minute_s
            accepted = sum(told.accepted for told in load.runs.values())
            minute = (time.monotonic() - began) / 60
            say(f"minute {minute:4.1f}: {accepted} accepted, {len(load.in_flight)} calls open; {sample}")
        await asyncio.sleep(SAMPLE_S)


async def soak(house: House, load: Load, arguments: argparse.Namespace) -> Samples:
    """Run load and faults side by side; afterwards nothing is wrong any more."""
    seconds = arguments.minutes * 60
    schedule = make_schedule(arguments.seed, seconds, workers=arguments.workers, apis=arguments.apis)
    say(f"seed {arguments.seed}, {seconds:.0f} s, {arguments.rate:g} requests/s; the faults to come:")
    for fault in schedule:
        say(f"  {fault}")
    samples = Samples()
    aside = [
        asyncio.create_task(house.supervise()),
        asyncio.create_task(look_along(house, load, samples, min(60.0, seconds / 4))),
    ]
    say("now:")
    await asyncio.gather(load.run(seconds), house.break_things(schedule, say))
    await asyncio.sleep(2)
    for task in aside:
        task.cancel()
    await asyncio.wait(aside)
    return samples


def report(verdict: Verdict, load: Load, house: House, samples: Samples, leaked: list[str]) -> bool:
    """Print what came of it; returns whether all is well."""
    grown = [one for one in samples.growth() if not one.flat]
    say("")
    say(
        f"accepted {verdict.accepted}, ended {verdict.ended}, deleted {verdict.deleted}, ",
    )
    say(f"lost {sum('is lost' in fault for fault in verdict.faults)}, never accepted {verdict.never_accepted}")
    say(f"statuses: {dict(verdict.statuses.most_common())}")
    say(f"failed by code: {dict(verdict.failures)} (internal: three losses, told apart)")
    say(f"attempts: {dict(sorted(verdict.attempts.items()))}")
    say(f"answers: {dict(sorted(load.tally.counts.items()))}")
    say(f"restarted: {house.restarts}; steps paid for again around a fault: {verdict.paid_again}")
    for one in samples.growth():
        say(str(one))
    say(f"keys left behind: {len(leaked)} {leaked[:10]}")
    for fault in verdict.faults[:SHOWN_FAULTS]:
        say(f"FAULT: {fault}")
    well = not verdict.faults and not leaked and not grown
    say(f"{'PASSED' if well else 'FAILED'}: {len(verdict.faults)} faults, {len(leaked)} keys, {len(grown)} that grow")
    return well


def settle(client: redis.Redis) -> list[str]:
    """Wait until the transport is empty; returns what stays."""
    until = time.monotonic() + SETTLE_S
    while (leaked := left_behind(client)) and time.monotonic() < until:
        time.sleep(1)
    return leaked


def main() -> int:
    """Read the command line, soak, and tell."""
    parser = argparse.ArgumentParser(prog="tests.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rate", type=float, default=20, help="requests a second")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--apis", type=int, default=2)
    parser.add_argument("--delay-ms", type=float, default=80, help="what the judge takes for an answer")
    parser.add_argument("--server", choices=KINDS, default="valkey")
    parser.add_argument("--folder", type=Path, help="where logs and data go; default: a temporary one")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = secrets.randbelow(1_000_000)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="assay-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    say(f"logs in {folder}")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(arguments.server, folder / "redis"))
        house = stack.enter_context(
            House(server, folder, workers=arguments.workers, apis=arguments.apis, delay_ms=arguments.delay_ms)
        )
        urls = [f"http://127.0.0.1:{port}" for port in house.service.ports]
        load = Load(urls, arguments.seed, arguments.rate)
        samples = asyncio.run(soak(house, load, arguments))
        client = stack.enter_context(redis.Redis.from_url(server.url))
        seconds = wait_for_ends(client, load.runs.values(), END_PATIENCE_S)
        say(f"after the load, runs took {seconds:.0f} s to end")
        leaked = settle(client)
        verdict = judge_runs(client, load, house.service.stub.ledger(), house.troubles)
        return 0 if report(verdict, load, house, samples, leaked) else 1


if __name__ == "__main__":
    sys.exit(main())
