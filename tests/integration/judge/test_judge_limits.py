"""Limits that processes keep together, on a real Valkey; each limiter here stands for a process."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from app.adapters.clock import SystemClock
from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.adapters.judge_limits import MARGIN_S, Admission, JudgeLimiter
from app.adapters.judge_pauses import CHANNEL, JudgePauses
from app.adapters.judge_spec import Limits
from app.adapters.redis_client import connect
from app.domain.errors import JudgeUnavailable

pytestmark = pytest.mark.anyio

CLOCK = SystemClock()
PATIENCE_S = 30.0
WINDOW_S = 1


@pytest.fixture
async def clients(valkey_url: str) -> AsyncIterator[Callable[[], Redis]]:
    """Make connections, each as of another process."""
    async with AsyncExitStack() as stack:

        def make() -> Redis:
            client = connect(valkey_url)
            stack.push_async_callback(client.aclose)
            return client

        yield make


class Process:
    """One process's view of a judge's limits."""

    def __init__(self, client: Redis, limits: Limits, **options: object) -> None:
        self.waits: list[str] = []
        self.limiter = JudgeLimiter(
            client,
            "judge",
            limits,
            CLOCK,
            lambda cause, _: self.waits.append(cause),
            **options,  # type: ignore[arg-type]
        )

    async def admit(
        self,
        tokens: int = 10,
        *,
        within_s: float = PATIENCE_S,
        lease_s: float = 30.0,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Admission:
        deadline = CLOCK.monotonic() + within_s
        admission = await self.limiter.admit(tokens, lease_s=lease_s, deadline=deadline, wanted=wanted)
        assert admission is not None
        return admission


def most_within(times: list[float], window_s: float) -> int:
    """How many of these moments lie within any stretch of this length, at most."""
    most, stretch = 0, deque[float]()
    for moment in sorted(times):
        stretch.append(moment)
        while moment - stretch[0] >= window_s:
            stretch.popleft()
        most = max(most, len(stretch))
    return most


async def test_processes_that_share_a_limit_never_exceed_it(clients: Callable[[], Redis]) -> None:
    limits = Limits(requests_per_minute=7)
    processes = [Process(clients(), limits, window_s=WINDOW_S) for _ in range(5)]
    times: list[float] = []

    async def call(process: Process) -> None:
        process.limiter.settle(await process.admit(), 0)
        times.append(time.monotonic())

    await asyncio.gather(*(call(process) for process in processes for _ in range(4)))

    assert len(times) == 20
    assert most_within(times, WINDOW_S) <= 7
    assert {cause for process in processes for cause in process.waits} == {"requests"}


@pytest.mark.parametrize("window_s", [60])
@given(
    arrivals=st.lists(
        st.tuples(st.integers(0, 25_000), st.integers(1, 140), st.one_of(st.none(), st.integers(0, 140))), max_size=40
    )
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
async def test_whatever_comes_when_no_minute_sees_more_than_the_limits(
    valkey_url: str, window_s: int, arrivals: list[tuple[int, int, int | None]]
) -> None:
    """Arrivals: milliseconds after the one before, tokens set aside, tokens used in the end (never more)."""
    client, now_ms = connect(valkey_url), 1_000_000_000
    await client.flushall()
    limits = Limits(requests_per_minute=5, tokens_per_minute=100)
    process = Process(client, limits, window_s=window_s, now_ms=lambda: now_ms)
    admitted: list[tuple[int, int]] = []
    try:
        for gap_ms, tokens, used in arrivals:
            now_ms += gap_ms
            answer = await process.limiter._ask(f"lease-{now_ms}-{len(admitted)}", tokens, 30.0)
            refusals = 0
            while not isinstance(answer, Admission):
                refusals += 1
                assert refusals <= 2, "the wait that a refusal names is enough, once for each limit"
                assert answer.wait_s is not None
                assert 0 < answer.wait_s <= window_s + MARGIN_S + 1
                now_ms += round(answer.wait_s * 1000)
                answer = await process.limiter._ask(f"lease-{now_ms}-{len(admitted)}", tokens, 30.0)
            spent = tokens if not used else min(used, tokens)
            await process.limiter._settled(answer, spent - tokens)
            admitted.append((now_ms, spent))
    finally:
        await client.aclose()
    for begin, _ in admitted:
        minute = [tokens for moment, tokens in admitted if begin <= moment < begin + window_s * 1000]
        assert len(minute) <= 5
        assert sum(minute) <= 100 or len(minute) == 1


@pytest.mark.parametrize("within_its_second_ms", [0, 500, 999])
@pytest.mark.parametrize("limits", [Limits(requests_per_minute=1), Limits(tokens_per_minute=10)])
async def test_a_minute_and_a_little_lies_between_calls(
    clients: Callable[[], Redis], limits: Limits, within_its_second_ms: int
) -> None:
    first_ms = now_ms = 1_000_000_000 + within_its_second_ms
    process = Process(clients(), limits, now_ms=lambda: now_ms)
    assert isinstance(await process.limiter._ask("first", 10, 1.0), Admission)

    for later_ms, is_admitted in ((1, False), (58_000, False), (61_000, False), (62_000, True)):
        now_ms = first_ms + later_ms
        answer = await process.limiter._ask("second", 10, 1.0)
        assert isinstance(answer, Admission) is is_admitted, later_ms


async def test_a_server_clock_that_is_set_back_stops_nobody_for_long(clients: Callable[[], Redis]) -> None:
    now_ms = 1_000_000_000
    process = Process(clients(), Limits(requests_per_minute=1), now_ms=lambda: now_ms)
    await process.admit()
    now_ms -= 3_600_000

    await process.admit(within_s=5.0)


async def test_a_call_larger_than_the_limit_goes_alone(clients: Callable[[], Redis]) -> None:
    process = Process(clients(), Limits(tokens_per_minute=100), window_s=WINDOW_S)
    times = []
    for tokens in (10, 1_000, 10):
        await process.admit(tokens)
        times.append(time.monotonic())

    assert all(later - earlier >= WINDOW_S for earlier, later in pairwise(times))
    assert process.waits == ["tokens", "tokens"]


async def test_tokens_that_were_not_used_are_free_again(clients: Callable[[], Redis]) -> None:
    process = Process(clients(), Limits(tokens_per_minute=100))
    first = await process.admit(90)
    process.limiter.settle(first, 10)
    await process.limiter.aclose()

    await process.admit(90)

    assert process.waits == []


async def test_an_end_that_is_told_twice_counts_once(clients: Callable[[], Redis]) -> None:
    client = clients()
    process = Process(client, Limits(tokens_per_minute=100))
    first = await process.admit(90)
    for _ in range(2):
        await process.limiter._settled(first, -30)

    (used,) = [int(value) for key, value in (await client.hgetall(process.limiter._keys[0])).items() if key[:1] == b"t"]
    assert used == 60


async def test_an_admission_that_is_asked_twice_counts_once(clients: Callable[[], Redis]) -> None:
    client = clients()
    process = Process(client, Limits(requests_per_minute=1))

    answers = [await process.limiter._ask("the-same", 10, 30.0) for _ in range(2)]

    assert all(isinstance(answer, Admission) for answer in answers)


async def test_places_in_flight_are_shared_and_freed(clients: Callable[[], Redis]) -> None:
    limits = Limits(in_flight=3)
    processes = [Process(clients(), limits) for _ in range(4)]
    at_once = most = 0

    async def call(process: Process) -> None:
        nonlocal at_once, most
        admission = await process.admit()
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        process.limiter.settle(admission, 0)

    await asyncio.gather(*(call(process) for process in processes for _ in range(10)))

    assert most == 3
    assert {cause for process in processes for cause in process.waits} == {"in_flight"}


async def test_the_places_of_a_killed_process_end_with_their_leases(clients: Callable[[], Redis]) -> None:
    killed, other = Process(clients(), Limits(in_flight=1)), Process(clients(), Limits(in_flight=1))
    await killed.admit(lease_s=0.2)

    await other.admit()

    assert other.waits == ["in_flight"]


async def test_those_who_wait_are_not_pollers(clients: Callable[[], Redis]) -> None:
    client = clients()
    process = Process(client, Limits(requests_per_minute=1))
    await process.admit()
    before = (await client.info("commandstats")).get("cmdstat_evalsha", {"calls": 0})["calls"]
    waiting = [asyncio.create_task(process.admit()) for _ in range(200)]
    await asyncio.sleep(0.5)
    asked = (await client.info("commandstats"))["cmdstat_evalsha"]["calls"] - before

    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert asked <= 2


async def test_the_wait_ends_just_before_the_deadline_and_says_why(clients: Callable[[], Redis]) -> None:
    process = Process(clients(), Limits(requests_per_minute=1))
    await process.admit()

    with pytest.raises(JudgeUnavailable, match="requests a minute") as caught:
        await process.admit(within_s=0.3)

    assert caught.value.own_deadline


async def test_a_call_that_is_no_longer_wanted_leaves_the_line(clients: Callable[[], Redis]) -> None:
    process = Process(clients(), Limits(requests_per_minute=1))
    await process.admit()
    wanted = True
    waiting = asyncio.create_task(
        process.limiter.admit(10, lease_s=30.0, deadline=CLOCK.monotonic() + PATIENCE_S, wanted=lambda: wanted)
    )
    await asyncio.sleep(0)

    wanted = False

    assert await waiting is None


async def test_a_cancelled_caller_keeps_no_place(clients: Callable[[], Redis]) -> None:
    client = clients()
    process = Process(client, Limits(in_flight=1))
    asking = asyncio.create_task(process.admit())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await process.limiter.aclose()

    await process.admit(within_s=5.0)


async def test_a_place_that_was_granted_unheard_is_given_back(
    clients: Callable[[], Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, is_wanted = Process(clients(), Limits(in_flight=1)), True
    admit = process.limiter._admit

    async def lose_the_answer(**call: Any) -> None:
        nonlocal is_wanted
        await admit(**call)
        is_wanted = False
        raise ConnectionResetError

    with monkeypatch.context() as patch:
        patch.setattr(process.limiter, "_admit", lose_the_answer)
        deadline = CLOCK.monotonic() + PATIENCE_S
        assert await process.limiter.admit(10, lease_s=30.0, deadline=deadline, wanted=lambda: is_wanted) is None

    await process.admit(within_s=5.0)


@pytest.fixture
def own_valkey(tmp_path: object) -> object:
    server = start_valkey(tmp_path)  # type: ignore[arg-type]
    yield server
    server.stop()


async def test_without_redis_a_limited_judge_is_not_stormed(own_valkey: EmbeddedValkey) -> None:
    client = connect(own_valkey.url)
    process = Process(client, Limits(requests_per_minute=100))
    own_valkey.stop()

    with pytest.raises(JudgeUnavailable, match="Redis") as caught:
        await process.admit(within_s=1.0)

    assert caught.value.own_deadline
    await client.aclose()


async def known_to(pauses: JudgePauses) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not pauses.left_s("judge"):  # noqa: ASYNC110 - it comes through Redis
            await asyncio.sleep(0.01)


async def test_a_pause_is_told_to_those_who_listen_without_being_asked(clients: Callable[[], Redis]) -> None:
    client = clients()
    one, other = JudgePauses(CLOCK, clients()), JudgePauses(CLOCK, clients())
    for pauses in (one, other):
        pauses.follow("judge")
    other.start()
    async with asyncio.timeout(PATIENCE_S):
        while not dict(await client.pubsub_numsub(CHANNEL))[CHANNEL.encode()]:  # noqa: ASYNC110 - Redis knows
            await asyncio.sleep(0.01)

    # Whatever else somebody publishes there must not end the listening.
    await client.publish(CHANNEL, b"\xff no pause")
    one.pause("judge", 20.0)
    await known_to(other)
    one.pause("judge", 40.0)

    async with asyncio.timeout(PATIENCE_S):
        while other.left_s("judge") < 30.0:  # noqa: ASYNC110 - it comes through Redis
            await asyncio.sleep(0.01)
    for pauses in (one, other):
        await pauses.aclose()


async def test_a_pause_is_known_to_every_process(clients: Callable[[], Redis]) -> None:
    one, other = JudgePauses(CLOCK, clients()), JudgePauses(CLOCK, clients())
    for pauses in (one, other):
        pauses.follow("judge")
        pauses.follow("another")
    other.start()

    one.pause("judge", 20.0)

    assert one.left_s("judge") > 19.0
    await known_to(other)
    assert 17.0 < other.left_s("judge") <= 20.0
    assert other.left_s("another") == 0.0
    for pauses in (one, other):
        await pauses.aclose()


async def test_a_shorter_pause_does_not_shorten_a_longer_one(clients: Callable[[], Redis]) -> None:
    one, other, third = (JudgePauses(CLOCK, clients()) for _ in range(3))
    for pauses in (one, other, third):
        pauses.follow("judge")
    for pauses, seconds in ((one, 60.0), (other, 1.0)):
        pauses.pause("judge", seconds)
        await asyncio.gather(*pauses._tasks)

    third.start()

    await known_to(third)
    assert third.left_s("judge") > 50.0
    await third.aclose()


@pytest.mark.parametrize("use", ["pause", "start"])
async def test_pauses_bear_an_outage_of_redis(own_valkey: EmbeddedValkey, use: str) -> None:
    client = connect(own_valkey.url)
    pauses = JudgePauses(CLOCK, client)
    pauses.follow("judge")
    own_valkey.stop()

    work: dict[str, Callable[[], None]] = {"pause": lambda: pauses.pause("judge", 5.0), "start": pauses.start}
    work[use]()
    tasks = list(pauses._tasks)
    await asyncio.wait(tasks, timeout=3.0 if use == "pause" else 0.5)

    assert pauses.left_s("judge") == (pytest.approx(5.0, abs=4.0) if use == "pause" else 0.0)
    assert all(not task.done() or task.exception() is None for task in tasks)
    await pauses.aclose()
    await client.aclose()
