"""When a judge is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.adapters.breaker import FAILURES, LONGEST_S, PROBING_S, Breaker, Entry, State


class Held:
    """A breaker whose time is in the test's hands."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.states: list[State] = []
        self.breaker = Breaker(lambda: self.seconds, self.states.append)

    def fail(self, times: int = 1) -> None:
        for _ in range(times):
            self.breaker.failed(self.breaker.enter())

    def pass_over(self) -> None:
        self.seconds += self.breaker.wait_s()


@pytest.fixture
def held() -> Held:
    return Held()


def test_it_opens_after_failures_in_a_row(held: Held) -> None:
    held.fail(FAILURES - 1)
    assert held.breaker.wait_s() == 0.0

    held.fail()

    assert held.states == [State.OPEN]
    assert 0.75 <= held.breaker.wait_s() <= 1.0


def test_a_success_resets_the_count(held: Held) -> None:
    held.fail(FAILURES - 1)
    held.breaker.succeeded(held.breaker.enter())
    held.fail(FAILURES - 1)

    assert held.states == []


def test_half_open_lets_one_call_through_at_a_time(held: Held) -> None:
    held.fail(FAILURES)
    held.pass_over()

    probe = held.breaker.enter()

    assert probe.probe
    assert held.states == [State.OPEN, State.HALF_OPEN]
    assert held.breaker.wait_s() == PROBING_S


def test_the_probes_success_closes(held: Held) -> None:
    held.fail(FAILURES)
    held.pass_over()
    held.breaker.succeeded(held.breaker.enter())

    assert held.states[-1] is State.CLOSED
    assert held.breaker.wait_s() == 0.0
    held.fail(FAILURES - 1)
    assert held.breaker.wait_s() == 0.0


def test_every_failed_probe_opens_for_longer_within_a_bound(held: Held) -> None:
    held.fail(FAILURES)
    waits = [held.breaker.wait_s()]
    for _ in range(10):
        held.pass_over()
        held.fail()
        waits.append(held.breaker.wait_s())

    assert waits[:5] == sorted(waits[:5])
    assert all(0.75 * LONGEST_S <= wait <= LONGEST_S for wait in waits[5:])


def test_after_a_recovery_it_opens_briefly_again(held: Held) -> None:
    for _ in range(2):
        held.fail(FAILURES)
        assert held.breaker.wait_s() <= 1.0
        held.pass_over()
        held.breaker.succeeded(held.breaker.enter())


def test_a_probe_that_is_cancelled_frees_its_place(held: Held) -> None:
    held.fail(FAILURES)
    held.pass_over()
    held.breaker.leave(held.breaker.enter())

    assert held.breaker.wait_s() == 0.0
    assert held.breaker.enter().probe


def test_late_failures_of_earlier_calls_say_nothing(held: Held) -> None:
    late = [held.breaker.enter() for _ in range(3)]
    held.fail(FAILURES)
    held.pass_over()
    probe = held.breaker.enter()
    for entry in late:
        held.breaker.failed(entry)
        held.breaker.leave(entry)

    assert held.breaker.wait_s() == PROBING_S
    held.breaker.succeeded(probe)
    assert held.breaker.state is State.CLOSED


def test_a_late_success_is_a_sign_of_life(held: Held) -> None:
    late = held.breaker.enter()
    held.fail(FAILURES)

    held.breaker.succeeded(late)

    assert held.breaker.wait_s() == 0.0


def test_a_call_admitted_before_the_opening_no_longer_stands(held: Held) -> None:
    waiting = held.breaker.enter()
    assert held.breaker.stands(waiting)

    held.fail(FAILURES)

    assert not held.breaker.stands(waiting)


@given(st.lists(st.tuples(st.sampled_from(["enter", "succeed", "fail", "leave", "wait"]), st.integers(0, 30))))
def test_whatever_happens_one_probe_at_most_is_under_way(steps: list[tuple[str, int]]) -> None:
    held, under_way = Held(), list[Entry]()
    for step, number in steps:
        if step == "wait":
            held.seconds += number / 10
        elif step == "enter" and held.breaker.wait_s() == 0.0:
            under_way.append(held.breaker.enter())
        elif step in {"succeed", "fail", "leave"} and under_way:
            entry = under_way.pop(number % len(under_way))
            {"succeed": held.breaker.succeeded, "fail": held.breaker.failed, "leave": held.breaker.leave}[step](entry)
        probes = [entry for entry in under_way if entry.probe and held.breaker.stands(entry)]
        assert len(probes) <= 1
        assert not probes or held.breaker.state is State.HALF_OPEN
        assert 0.0 <= held.breaker.wait_s() <= LONGEST_S
        assert (held.breaker.state is not State.CLOSED) or held.breaker.failures < FAILURES
    # However it went, a judge that answers is called freely again.
    held.seconds += LONGEST_S
    for entry in under_way:
        held.breaker.leave(entry)
    held.breaker.succeeded(held.breaker.enter())
    assert held.breaker.state is State.CLOSED
