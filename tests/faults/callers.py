"""Callers of a service under fault: they submit marked texts, wait for the runs' ends and count what came twice."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from tests.faults.ledger import Row
from tests.stub_judge.process import StubProcess

THREADS = 16
LOOK_AGAIN_S = 0.05
PATIENCE_S = 60.0
WAIT_S = 5
ENDED = frozenset({"completed", "failed", "not_scorable", "cancelled", "expired"})
STEPS = ("bias_preprocess", "bias_analyze", "bias_reason")
SCORE = 1.0


@dataclass(frozen=True, slots=True)
class Posted:
    """A run that was accepted, and the mark in its text."""

    run_id: str
    mark: str


def new_mark() -> str:
    """Return a mark that no other run has."""
    return f"mark-{uuid.uuid4().hex}"


def text_of(mark: str) -> str:
    """Return a text whose three steps all name the mark; its score is 1."""
    return f"The village {mark} is always inferior."


class Callers:
    """Many callers of one service; `clients` are its APIs."""

    def __init__(self, stub: StubProcess, clients: Sequence[httpx.Client]) -> None:
        self.stub = stub
        self.clients = clients
        self.client = clients[0]

    def post(self, count: int, *, authorization: str = "Bearer one", **body: Any) -> list[Posted]:
        """Submit queued runs; every one must be accepted."""
        headers = {"Authorization": authorization}

        def post_one(_: int) -> Posted:
            mark = new_mark()
            answer = self.client.post(
                "/v1/scorers/bias/runs", json={"output": text_of(mark), "mode": "queued", **body}, headers=headers
            )
            assert answer.status_code == 202, answer.text
            return Posted(answer.json()["runId"], mark)

        with ThreadPoolExecutor(THREADS) as threads:
            return list(threads.map(post_one, range(count)))

    def get(self, run_id: str, wait_s: int = 0) -> dict[str, Any]:
        """Return a run as it stands."""
        return self.client.get(f"/v1/runs/{run_id}", params={"wait": wait_s}).raise_for_status().json()

    def ends(self, posted: Iterable[Posted], patience_s: float = PATIENCE_S) -> list[dict[str, Any]]:
        """Return the runs when they ended, or as they stand when patience is over."""
        give_up = time.monotonic() + patience_s

        def end_of(one: Posted) -> dict[str, Any]:
            while True:
                run = self.get(one.run_id, WAIT_S)
                if run["status"] in ENDED or time.monotonic() > give_up:
                    return run

        with ThreadPoolExecutor(THREADS) as threads:
            return list(threads.map(end_of, posted))

    def until_calls(self, step: str, count: int, patience_s: float = PATIENCE_S) -> None:
        """Wait until the judge has been asked so often for a step."""
        until(lambda: self.asked()[step] >= count, f"{count} calls for {step}", patience_s)

    def asked(self) -> Counter[str]:
        """Return how often the judge was asked for each step."""
        return Counter(call.step for call in self.stub.ledger())

    def answered(self) -> Counter[tuple[str, str]]:
        """Return how often the judge answered each step of each mark: the bill."""
        return Counter((call.mark, call.step) for call in self.stub.ledger() if call.outcome == 200)

    def ends_in_events(self, run_id: str) -> int:
        """Return how many ends a run's events tell; a stream stops at the first, so ask for what comes after it."""
        count, last = 0, ""
        while True:
            reply = self.client.get(f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": last} if last else {})
            lines = reply.raise_for_status().text.splitlines()
            ids = [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]
            if not ids:
                return count
            count += lines.count("event: run")
            last = ids[-1]

    def judge(
        self,
        fault: str,
        server: str,
        posted: list[Posted],
        *,
        since: float,
        status: str = "completed",
        patience_s: float = PATIENCE_S,
        paid_again: int = 0,
        note: str = "",
    ) -> Row:
        """Wait for the ends and say what the fault cost.

        A run is duplicated when its events tell more than one end, its end moves, or a step was answered twice; the
        judge may have answered `paid_again` steps a second time, when the fault lies between its answer and us.
        """
        runs = self.ends(posted, patience_s)
        recovered = [run for run in runs if run["status"] == status]
        lost = sum(run["status"] not in ENDED for run in runs)
        with ThreadPoolExecutor(THREADS) as threads:
            ends = list(threads.map(self.ends_in_events, [run["runId"] for run in runs]))
            again = list(threads.map(self.get, [run["runId"] for run in runs]))
        moved = sum(first != second for first, second in zip(runs, again, strict=True))
        marks = {one.mark for one in posted}
        twice = sum(count - 1 for (mark, _), count in self.answered().items() if mark in marks)
        doubled = sum(count > 1 for count in ends) + moved + max(0, twice - paid_again)
        slowest = max((ended_at(run) - since for run in recovered), default=None)
        return Row(fault, server, len(posted), len(recovered), lost, doubled, slowest, note)


def ended_at(run: dict[str, Any]) -> float:
    """Return when a run ended, in Unix seconds."""
    return datetime.fromisoformat(run["completedAt"]).timestamp()


def until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds, looking often."""
    give_up = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"it did not come about: {what}")
        time.sleep(LOOK_AGAIN_S)


def assert_whole(row: Row) -> None:
    """Fail unless every run came through, once."""
    assert (row.recovered, row.lost, row.duplicated) == (row.in_flight, 0, 0), row
