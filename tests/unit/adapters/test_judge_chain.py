"""Fallbacks: who is asked when, who answered, and whose error it is."""

from typing import Any

import httpx
import pytest

from app.adapters.breaker import FAILURES
from app.adapters.judge_chain import JudgeChain
from app.adapters.retries import RetryPolicy
from app.domain.errors import AssayError, JudgeTimeout, JudgeUnavailable, NotConfigured
from app.ports import Completion, FinishReason
from tests.unit.adapters.chat_fakes import PROMPT, Handler, Harness, HeldClock, LentSlot, completion, in_turn, refusal

pytestmark = pytest.mark.anyio

DOWN = httpx.ConnectError("refused")


class Chain:
    """A judge and its fallbacks, all on one clock."""

    def __init__(self, *handlers: Handler, max_retries: int = 0, **first: Any) -> None:
        self.clock = HeldClock()
        self.members = [
            Harness(
                handler, max_retries=max_retries, clock=self.clock, id=f"acme/{name}", **(first if not number else {})
            )
            for number, (name, handler) in enumerate(zip("abc", handlers, strict=False))
        ]
        self.counts = self.members[0].counts
        judge, *fallbacks = [member.model for member in self.members]
        self.chain = JudgeChain(
            judge,
            fallbacks,
            self.clock,
            self.counts,  # type: ignore[arg-type]
            RetryPolicy(max_retries),
            pause=self.members[0]._pause,
        )

    async def ask(self, *, within_s: float = 300.0, slot: LentSlot | None = None) -> Completion:
        return await self.chain.complete(PROMPT, deadline=self.clock.seconds + within_s, slot=slot)

    async def fail(self, **arguments: Any) -> AssayError:
        with pytest.raises(AssayError) as caught:
            await self.ask(**arguments)
        return caught.value

    @property
    def calls(self) -> list[int]:
        return [len(member.requests) for member in self.members]


async def test_while_the_judge_answers_nobody_else_is_asked() -> None:
    chain = Chain(in_turn(completion()), in_turn(completion()))

    assert (await chain.ask()).model == "acme/a"
    assert chain.calls == [1, 0]
    assert chain.counts.fell_back == []


@pytest.mark.parametrize(
    "trouble",
    [DOWN, httpx.ReadTimeout("slow"), refusal(500, "x"), refusal(529, "x"), refusal(429, "x"), refusal(501, "")],
)
async def test_the_first_fallback_that_answers_is_named(trouble: httpx.Response | Exception) -> None:
    chain = Chain(in_turn(trouble), in_turn(DOWN), in_turn(completion()))

    assert (await chain.ask()).model == "acme/c"
    assert chain.calls == [1, 1, 1]
    assert chain.counts.fell_back == [("acme/a", "acme/c")]


async def test_a_time_out_is_not_tried_again_before_the_fallback() -> None:
    chain = Chain(in_turn(httpx.ReadTimeout("slow")), in_turn(completion()), max_retries=2)

    await chain.ask()

    assert chain.calls == [1, 1]


async def test_a_judge_that_asks_to_wait_is_left_for_its_fallback() -> None:
    limited = httpx.Response(429, headers={"retry-after": "30"})
    chain = Chain(in_turn(limited, completion()), in_turn(completion()), max_retries=2)

    assert [(await chain.ask()).model for _ in range(3)] == ["acme/b"] * 3
    assert chain.calls == [1, 3]
    chain.clock.seconds += 31.0
    assert (await chain.ask()).model == "acme/a"


@pytest.mark.parametrize("max_retries", [0, 2])
async def test_a_judge_that_is_left_alone_costs_its_runs_nothing(max_retries: int) -> None:
    chain = Chain(in_turn(DOWN), in_turn(completion()), max_retries=max_retries)
    for _ in range(FAILURES):
        await chain.ask()
    now = chain.clock.seconds

    for _ in range(50):
        await chain.ask()

    assert chain.clock.seconds == now
    assert chain.calls[0] <= FAILURES + 2
    assert chain.calls[1] == FAILURES + 50


@pytest.mark.parametrize("answer", [refusal(401, "bad key"), refusal(404, "no such model"), refusal(402, "pay")])
async def test_what_an_operator_must_mend_is_not_hidden(answer: httpx.Response) -> None:
    chain = Chain(in_turn(answer), in_turn(completion()))

    assert isinstance(await chain.fail(), NotConfigured)
    assert chain.calls == [1, 0]


async def test_a_refusal_is_an_answer() -> None:
    chain = Chain(in_turn(completion(None, refusal="No.")), in_turn(completion()))

    assert (await chain.ask()).finish is FinishReason.REFUSAL


@pytest.mark.parametrize("others", [DOWN, refusal(401, "bad key"), refusal(413, "too long")])
async def test_when_nobody_answers_it_is_the_judges_error(others: httpx.Response | Exception) -> None:
    chain = Chain(in_turn(refusal(503, "x")), in_turn(others))

    error = await chain.fail()

    assert isinstance(error, JudgeUnavailable)
    assert "503" in error.detail
    assert not error.own_deadline


async def test_no_time_is_no_reason_to_ask_another() -> None:
    chain = Chain(in_turn(completion()), in_turn(completion()))

    error = await chain.fail(within_s=0.0)

    assert isinstance(error, JudgeTimeout)
    assert error.own_deadline
    assert chain.calls == [0, 0]


async def test_a_queued_run_goes_round_until_somebody_is_back() -> None:
    chain, slot = Chain(in_turn(DOWN), in_turn(refusal(503, "x"))), LentSlot()
    member, back_at = chain.members[1], chain.clock.seconds + 60.0
    down = member.handler
    member.handler = lambda request: completion() if chain.clock.seconds >= back_at else down(request)

    assert (await chain.ask(slot=slot)).model == "acme/b"
    assert slot.times > 0
    assert slot.lent_now == 0
    assert sum(chain.calls) < 40


async def test_a_queued_run_gives_up_before_its_deadline() -> None:
    chain, slot = Chain(in_turn(DOWN), in_turn(DOWN)), LentSlot()

    assert isinstance(await chain.fail(slot=slot, within_s=60.0), JudgeUnavailable)
    assert chain.clock.seconds <= 1_060.0


def test_it_plans_for_the_smallest_and_is_cached_apart() -> None:
    handler = in_turn(completion())
    chain = Chain(handler, handler, context_tokens=32_000, max_output_tokens=1_000)

    assert (chain.chain.id, chain.chain.context_tokens, chain.chain.max_output_tokens) == ("acme/a", 8_192, 1_000)
    identities = {chain.chain.identity, *(member.model.identity for member in chain.members)}
    assert len(identities) == 3
