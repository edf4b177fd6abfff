"""Whatever callers, workers and RQ's tools do to the queue, in any order: no job is lost, doubled or passed over."""

import asyncio
from collections import Counter, defaultdict

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.adapters.redis_client import connect
from app.adapters.rq_queue import RqRunQueue, job_id
from app.domain.request import Priority
from app.ports import RunKey
from tests.integration.worker.running import NAMES
from worker.bookkeeping import Bookkeeping, Ending, Outcome, Taken

WINDOW = 64
CALLERS = "abc"
LIST = "rq:queue:assay-normal"


class Line(RuleBasedStateMachine):
    """One priority, three callers, one worker; the model is who waits, in the order each caller sent them."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client = redis.Redis.from_url(self.url)
        self.client.flushall()
        self.connection = connect(self.url)
        self.queue = RqRunQueue(self.connection, limit=1_000_000)
        self.books = Bookkeeping(self.connection, "the-worker", NAMES)
        self.numbers: Counter[str] = Counter()
        self.waiting: dict[str, list[str]] = defaultdict(list)
        self.taken: dict[str, Taken] = {}
        self.front: list[str] = []
        # How many jobs of others were taken since each caller's first one began to wait.
        self.passed: Counter[str] = Counter()

    def teardown(self) -> None:
        self.runner.run(self.connection.aclose())
        self.runner.close()
        self.client.close()

    @initialize()
    def begin_with_a_long_line(self) -> None:
        for caller, count in zip(CALLERS, (WINDOW + 5, 100, 100), strict=True):
            self.enqueue(caller, count)

    @rule(caller=st.sampled_from(CALLERS), count=st.integers(1, 50))
    def enqueue(self, caller: str, count: int) -> None:
        async def put() -> None:
            for _ in range(count):
                run = key(caller, self.numbers[caller])
                self.numbers[caller] += 1
                self.waiting[caller].append(job_id(run))
                await self.queue.enqueue(run, Priority.NORMAL, 60, caller=caller)

        if not self.waiting[caller]:
            self.passed[caller] = 0
        self.runner.run(put())

    @rule(wanted=st.integers(1, 64))
    def take(self, wanted: int) -> None:
        expected = min(wanted, self.in_line)
        jobs = self.runner.run(self.books.take(wanted)) or []
        assert len(jobs) == expected
        for job in jobs:
            self.take_one(job)

    def take_one(self, job: Taken) -> None:
        caller = job.job_id[0]
        assert job.job_id not in self.taken
        if self.front:
            assert job.job_id == self.front.pop(0)
        else:
            # Each caller's jobs in their order.
            assert self.waiting[caller].pop(0) == job.job_id
            self.passed[caller] = 0
            for other in CALLERS:
                if other != caller and self.waiting[other]:
                    self.passed[other] += 1
        self.taken[job.job_id] = job

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), outcome=st.sampled_from([Outcome.DONE, Outcome.RETURNED, Outcome.FAILED]))
    def end(self, data: st.DataObject, outcome: Outcome) -> None:
        job = self.taken.pop(data.draw(st.sampled_from(sorted(self.taken))))
        self.runner.run(self.books.end([Ending(job, outcome, "x" if outcome is Outcome.FAILED else "", 0.0)]))
        if outcome is not Outcome.DONE:
            self.front.insert(0, job.job_id)

    @precondition(lambda self: any(self.waiting.values()))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(sorted(id_ for line in self.waiting.values() for id_ in line)))
        self.waiting[chosen[0]].remove(chosen)
        self.runner.run(self.queue.remove(key(chosen[0], int(chosen[2:10]))))

    @precondition(lambda self: any(self.waiting.values()))
    @rule(data=st.data())
    def enqueue_again(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(sorted(id_ for line in self.waiting.values() for id_ in line)))
        again = self.queue.enqueue(key(chosen[0], int(chosen[2:10])), Priority.NORMAL, 60, caller=chosen[0])
        self.runner.run(again)

    @rule()
    def empty_the_list_by_hand(self) -> None:
        """What RQ's `empty` does; what it deletes is gone, what is behind it moves up."""
        gone = {id_.decode() for id_ in self.client.lrange(LIST, 0, -1)}
        self.client.delete(LIST, *(f"rq:job:{id_}" for id_ in gone))
        self.front = [id_ for id_ in self.front if id_ not in gone]
        for caller in CALLERS:
            self.waiting[caller] = [id_ for id_ in self.waiting[caller] if id_ not in gone]
        self.runner.run(self.books.recover())
        assert self.client.llen(LIST) == min(WINDOW, self.in_line)

    @property
    def in_line(self) -> int:
        return len(self.front) + sum(map(len, self.waiting.values()))

    @invariant()
    def everybody_is_known_once(self) -> None:
        depth = self.runner.run(self.queue.depth())
        assert depth.by_priority[Priority.NORMAL] == self.in_line
        everyone = [key(caller, number) for caller in CALLERS for number in range(self.numbers[caller])]
        missing = {job_id(run) for run in self.runner.run(self.queue.missing(everyone))}
        known = {*self.front, *self.taken, *(id_ for line in self.waiting.values() for id_ in line)}
        assert missing == {job_id(run) for run in everyone} - known

    @invariant()
    def nobody_waits_for_more_than_a_window_and_a_turn(self) -> None:
        for caller in CALLERS:
            assert self.passed[caller] <= WINDOW + len(CALLERS) - 1 or not self.waiting[caller]

    @invariant()
    def the_head_is_in_rqs_list(self) -> None:
        assert self.client.llen(LIST) >= min(WINDOW, self.in_line)


def key(caller: str, number: int) -> RunKey:
    return RunKey("default", f"{caller}-{number:08d}")


@pytest.fixture
def line(valkey_url: str) -> type[Line]:
    return type("LineThere", (Line,), {"url": valkey_url})


def test_any_order_of_doings(line: type[Line]) -> None:
    run_state_machine_as_test(
        line,
        settings=settings(
            max_examples=30,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
