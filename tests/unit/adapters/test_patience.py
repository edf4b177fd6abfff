"""A judge that is away: who waits how long, what is called meanwhile, and what is said at the end."""

import asyncio
from typing import Any

import httpx
import pytest

from app.adapters.breaker import FAILURES
from app.adapters.rate_headers import LONGEST_EXHAUSTED_S
from app.domain.errors import AssayError, ContextOverflow, JudgeTimeout, JudgeUnavailable, NotConfigured
from tests.unit.adapters.chat_fakes import PROMPT, TEXT, Harness, LentSlot, completion, in_turn, refusal

pytestmark = pytest.mark.anyio

AWAY: list[httpx.Response | Exception] = [
    *[refusal(status, "later") for status in (500, 502, 503, 504, 529)],
    httpx.ConnectError("refused"),
    httpx.ReadError("reset"),
    httpx.ReadTimeout("slow"),
    httpx.Response(200, content=b'{"choices": [{"mess'),
]


def away_until(seconds: float, trouble: httpx.Response | Exception) -> tuple[Harness, LentSlot]:
    """A judge that is in trouble for so long."""
    harness = Harness(in_turn(trouble))
    back_at = harness.clock.seconds + seconds
    troubled = harness.handler
    harness.handler = lambda request: completion() if harness.clock.seconds >= back_at else troubled(request)
    return harness, LentSlot()


async def failure(harness: Harness, *, within_s: float = 60.0, slot: LentSlot | None = None) -> AssayError:
    with pytest.raises(AssayError) as caught:
        await harness.model.complete(PROMPT, deadline=harness.clock.seconds + within_s, slot=slot)
    return caught.value


@pytest.mark.parametrize("trouble", [*AWAY, refusal(429, "slow down")])
async def test_a_queued_run_waits_for_its_judge(trouble: httpx.Response | Exception) -> None:
    harness, slot = away_until(60.0, trouble)

    answer = await harness.model.complete(PROMPT, deadline=harness.clock.seconds + 300.0, slot=slot)

    assert answer.text == TEXT
    assert slot.times > 0
    assert slot.lent_now == 0
    # Left alone in between, and found again soon.
    assert len(harness.requests) < 60
    assert harness.clock.seconds < 1_000.0 + 60.0 + 40.0


@pytest.mark.parametrize("trouble", AWAY)
async def test_a_queued_run_gives_up_before_its_deadline_with_the_judges_error(
    trouble: httpx.Response | Exception,
) -> None:
    harness, slot = away_until(1_000.0, trouble)

    error = await failure(harness, slot=slot)

    assert isinstance(error, JudgeUnavailable | JudgeTimeout)
    assert error.own_deadline
    assert harness.clock.seconds < 1_060.0
    assert slot.lent_now == 0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal(401, "bad key"), NotConfigured),
        (refusal(404, "no such model"), NotConfigured),
        (refusal(400, "x", code="context_length_exceeded"), ContextOverflow),
        (refusal(501, "not implemented"), JudgeUnavailable),
    ],
)
async def test_what_no_waiting_helps_is_not_waited_for(answer: httpx.Response, kind: type[AssayError]) -> None:
    harness, slot = Harness(in_turn(answer)), LentSlot()

    assert isinstance(await failure(harness, slot=slot), kind)
    assert (len(harness.requests), slot.times, harness.waits) == (1, 0, [])


@pytest.mark.parametrize("trouble", AWAY)
async def test_many_runs_of_a_judge_that_is_away_make_few_calls(trouble: httpx.Response | Exception) -> None:
    harness, _ = away_until(1_000.0, trouble)

    for _ in range(100):
        await failure(harness, within_s=300.0)

    # What the breaker lets through before it has opened for longer than a caller waits.
    assert len(harness.requests) <= FAILURES + 10
    error = await failure(harness, within_s=300.0)
    assert isinstance(error, JudgeUnavailable)
    assert "left alone for another" in error.detail


@pytest.mark.parametrize("answer", [refusal(429, "slow"), refusal(400, "odd"), refusal(409, "busy")])
async def test_refusals_are_signs_of_life(answer: httpx.Response) -> None:
    harness = Harness(in_turn(answer))

    for _ in range(FAILURES + 1):
        await failure(harness)
        harness.clock.seconds += 60.0

    assert set(harness.counts.states) == {"closed"}


async def test_a_time_out_that_the_runs_own_deadline_made_is_not_the_judges_failure() -> None:
    harness = Harness(in_turn(httpx.ReadTimeout("slow")), max_retries=0)

    for _ in range(FAILURES + 1):
        await failure(harness, within_s=1.0)
    assert set(harness.counts.states) == {"closed"}

    for _ in range(FAILURES):
        await failure(harness, within_s=60.0)
    assert harness.counts.states[-1] == "open"


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_retry_after_holds_back_every_call_of_the_judge(status: int) -> None:
    harness = Harness(in_turn(refusal(status, "later"), completion()), max_retries=0)
    harness.handler = in_turn(httpx.Response(status, headers={"retry-after": "30"}), completion())
    await failure(harness)

    error = await failure(harness, within_s=20.0)

    assert "asks not to be called for another 30.0 s" in error.detail
    assert len(harness.requests) == 1
    harness.clock.seconds += 30.0
    assert (await harness.model.complete(PROMPT, deadline=harness.deadline)).text == TEXT


async def test_retry_after_is_never_believed_for_more_than_an_hour() -> None:
    harness = Harness(in_turn(httpx.Response(429, headers={"retry-after": "999999"}), completion()), max_retries=0)
    await failure(harness)
    harness.clock.seconds += 3_600.0

    assert (await harness.model.complete(PROMPT, deadline=harness.deadline)).text == TEXT


@pytest.mark.parametrize(("reset", "held_s"), [("6s", 6.0), ("6h0m0s", LONGEST_EXHAUSTED_S)])
async def test_headers_of_a_good_answer_hold_back_the_next_call(reset: str, held_s: float) -> None:
    answer = completion()
    answer.headers.update({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset})
    harness = Harness(in_turn(answer, completion()))
    await harness.model.complete(PROMPT, deadline=harness.deadline)

    await harness.model.complete(PROMPT, deadline=harness.clock.seconds + 300.0)

    assert held_s <= sum(harness.waits) <= held_s + 1.0
    assert harness.counts.waits[0][:2] == ("acme/judge", "paused")


async def test_a_run_waits_for_a_day_that_rate_headers_speak_of_a_minute_at_a_time() -> None:
    exhausted = refusal(429, "slow down")
    exhausted.headers.update({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "24h0m0s"})
    harness, slot = away_until(90.0, exhausted)

    answer = await harness.model.complete(PROMPT, deadline=harness.clock.seconds + 300.0, slot=slot)

    assert answer.text == TEXT
    assert len(harness.requests) == 3


async def test_a_429_without_a_word_pauses_for_longer_every_time() -> None:
    harness = Harness(in_turn(refusal(429, "slow down")), max_retries=0)
    held = []
    for _ in range(8):
        await failure(harness)
        held.append(harness.gate.held_s())
        harness.clock.seconds += 60.0

    assert 0.25 <= held[0] <= 0.5
    assert 4.0 <= held[-1] <= 8.0
    harness.handler = in_turn(completion(), refusal(429, "slow down"))
    await harness.model.complete(PROMPT, deadline=harness.deadline)
    await failure(harness)
    assert harness.gate.held_s() <= 0.5


async def test_calls_refused_together_are_one_strike() -> None:
    harness = Harness(in_turn(refusal(429, "slow down")), max_retries=0)

    await asyncio.gather(*(failure(harness) for _ in range(50)))

    assert harness.gate.held_s() <= 0.5


async def test_runs_that_wait_for_a_paused_judge_hold_no_place() -> None:
    harness = Harness(in_turn(completion()), max_in_flight=1)
    harness.pauses.pause(harness.spec.shared_name, 20.0)
    seen: list[Any] = []

    async def pause(seconds: float) -> None:
        seen.append(harness.gate._places.locked())
        harness.clock.seconds += seconds

    harness.model._pause = pause
    await harness.model.complete(PROMPT, deadline=harness.deadline, slot=LentSlot())

    assert seen == [False]


async def test_a_cancelled_probe_leaves_its_place_to_the_next() -> None:
    harness = Harness(in_turn(refusal(500, "later")), max_retries=0)
    for _ in range(FAILURES):
        await failure(harness)
    harness.clock.seconds += 1.0
    probing, plain_post = asyncio.Event(), harness.model._endpoint.post

    async def hang(body: bytes, timeout_s: float) -> Any:
        probing.set()
        await asyncio.Event().wait()

    harness.model._endpoint.post = hang  # type: ignore[method-assign]
    probe = asyncio.create_task(harness.model.complete(PROMPT, deadline=harness.deadline))
    await probing.wait()
    assert "left alone" in (await failure(harness)).detail
    probe.cancel()
    await asyncio.wait({probe})

    harness.model._endpoint.post = plain_post  # type: ignore[method-assign]
    harness.handler = in_turn(completion())
    assert (await harness.model.complete(PROMPT, deadline=harness.deadline)).text == TEXT
    assert harness.counts.states[-1] == "closed"
