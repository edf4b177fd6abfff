"""Whether a soak lost, doubled or left anything behind."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import orjson
import redis

from app.adapters.run_keys import run_keys
from app.ports import RunKey
from tests.faults.soak.load import ENDED, Load, Told
from tests.stub_judge.process import Call

LOOK_AGAIN_S = 1.0
BATCH = 500
# A call that was under way when something broke may be paid for again.
MARGIN_S = 20.0
TENANT = "default"
LEFT_BEHIND = (
    "rq:job:*",
    "rq:wip:*",
    "rq:queue:*",
    "rq:backlog:*",
    "rq:callers:*",
    "rq:execution*",
    "rq:intermediate*",
    "assay:due*",
)


@dataclass(slots=True)
class Verdict:
    """What was found; `faults` are sentences about what must not be."""

    statuses: Counter[str] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    ended: int = 0
    never_accepted: int = 0
    deleted: int = 0
    paid_again: int = 0
    faults: list[str] = field(default_factory=list)


def stored_runs(client: redis.Redis, run_ids: list[str]) -> dict[str, dict[str, Any] | None]:
    """Return the runs as Redis has them."""
    found: dict[str, dict[str, Any] | None] = {}
    for start in range(0, len(run_ids), BATCH):
        part = run_ids[start : start + BATCH]
        pipe = client.pipeline(transaction=False)
        for run_id in part:
            pipe.hmget(run_keys(RunKey(TENANT, run_id))[0], "body", "status")
        for run_id, (body, status) in zip(part, pipe.execute(), strict=True):
            found[run_id] = None if body is None else orjson.loads(body) | {"status": status.decode()}
    return found


def wait_for_ends(client: redis.Redis, runs: Iterable[Told], patience_s: float) -> float:
    """Wait until every run that is stored has ended, or patience ends; returns the seconds it took."""
    began = time.monotonic()
    waiting = [told.run_id for told in runs if not told.deleted]
    while waiting and time.monotonic() - began < patience_s:
        found = stored_runs(client, waiting)
        waiting = [run_id for run_id in waiting if (run := found[run_id]) and run["status"] not in ENDED]
        if waiting:
            time.sleep(LOOK_AGAIN_S)
    return time.monotonic() - began


def judge_runs(client: redis.Redis, load: Load, calls: list[Call], troubles: list[tuple[float, float, str]]) -> Verdict:
    """Compare what callers were told with what is stored, with the events and with the judge's bill."""
    verdict = Verdict(faults=list(load.tally.wrong))
    found = stored_runs(client, list(load.runs))
    for told in load.runs.values():
        _judge_run(told, found[told.run_id], verdict)
    _judge_events(client, [run_id for run_id, run in found.items() if run is not None], verdict)
    _judge_bill(load, calls, troubles, verdict)
    return verdict


def _judge_run(told: Told, run: dict[str, Any] | None, verdict: Verdict) -> None:
    if told.deleted:
        verdict.deleted += 1
        if run is not None:
            verdict.faults.append(f"{told.run_id} was deleted and is there, {run['status']}")
        return
    if run is None:
        verdict.never_accepted += not told.accepted
        if told.accepted:
            verdict.faults.append(f"{told.run_id} was accepted and is lost")
        return
    verdict.accepted += 1
    verdict.statuses[run["status"]] += 1
    verdict.attempts[run["attempts"]] += 1
    if run["status"] in ENDED:
        verdict.ended += 1
        _judge_end(told, run, verdict)
    else:
        verdict.faults.append(f"{told.run_id} is still {run['status']} after {run['attempts']} attempts")


def _judge_end(told: Told, run: dict[str, Any], verdict: Verdict) -> None:
    status = run["status"]
    if status == "failed":
        verdict.failures[(run["error"] or {}).get("code", "none")] += 1
    if status == "completed" and run["score"] != 1.0:
        verdict.faults.append(f"{told.run_id} has the score {run['score']}")
    if status == "cancelled" and not told.cancelled and not told.busy:
        verdict.statuses["cancelled, its caller not told"] += 1
    if status == "expired" and not told.short:
        verdict.faults.append(f"{told.run_id} waited for all of its five minutes")
    seen = told.ended
    if seen and not told.unsure and seen["status"] != status:
        verdict.faults.append(f"{told.run_id} was {seen['status']} and is {status}")


def _judge_events(client: redis.Redis, run_ids: list[str], verdict: Verdict) -> None:
    for start in range(0, len(run_ids), BATCH):
        part = run_ids[start : start + BATCH]
        pipe = client.pipeline(transaction=False)
        for run_id in part:
            pipe.xrange(run_keys(RunKey(TENANT, run_id))[2])
        for run_id, events in zip(part, pipe.execute(), strict=True):
            ends = sum(fields[b"event"] == b"run" for _, fields in events)
            if ends != 1:
                verdict.faults.append(f"{run_id} has {ends} ends among its events")


def _judge_bill(load: Load, calls: list[Call], troubles: list[tuple[float, float, str]], verdict: Verdict) -> None:
    answered: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        if call.outcome == 200:
            answered[call.mark, call.step].append(call)
    by_mark = {told.mark: told for told in load.runs.values()}
    for (mark, step), same in answered.items():
        told = by_mark.get(mark)
        if told is None:
            verdict.faults.append(f"the judge was asked about {mark}, of which nobody knows")
            continue
        for first, second in pairwise(same):
            verdict.paid_again += 1
            if not _explained(first, second, troubles) and not told.deleted:
                gap = second.began - first.began
                verdict.faults.append(f"{told.run_id} paid twice for {step}, {gap:.1f} s apart, nothing being wrong")


def _explained(first: Call, second: Call, troubles: list[tuple[float, float, str]]) -> bool:
    return any(began <= second.began and first.began <= ended + MARGIN_S for began, ended, _ in troubles)


def left_behind(client: redis.Redis) -> list[str]:
    """Return the keys of the transport that should be gone when nothing waits; failed jobs stay for a while."""
    found = []
    for pattern in LEFT_BEHIND:
        for key in client.scan_iter(match=pattern, count=1000):
            name = key.decode()
            status = client.hget(key, "status") if name.startswith("rq:job:") and client.type(key) == b"hash" else None
            if status != b"failed":
                found.append(name)
    return found
