"""Equal questions at the same time: who leads, who shares, who takes over."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app.adapters.single_flight import Flown, SingleFlight

pytestmark = pytest.mark.anyio


class SharedFault(Exception):
    pass


class SharedKind(SharedFault):
    pass


class OwnFault(Exception):
    pass


class Question:
    """Counts how often it is asked; answers, or raises, when it is let."""

    def __init__(self, outcome: str | Exception = "answer") -> None:
        self.outcome = outcome
        self.asked = 0
        self.let = asyncio.Event()

    async def __call__(self) -> str:
        self.asked += 1
        await self.let.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def flights() -> SingleFlight[str]:
    return SingleFlight(lambda error: isinstance(error, SharedFault))


async def started(*calls: Awaitable[object]) -> list[asyncio.Task[object]]:
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    return tasks


def outcomes(tasks: list[asyncio.Task[object]]) -> Awaitable[list[object]]:
    return asyncio.gather(*tasks, return_exceptions=True)


async def test_one_leads_and_all_have_the_answer(flights: SingleFlight[str]):
    question = Question()
    tasks = await started(*(flights.fly("key", question) for _ in range(4)))
    question.let.set()
    assert await outcomes(tasks) == [Flown("answer", led=True)] + [Flown("answer", led=False)] * 3
    assert question.asked == 1


async def test_keys_fly_apart(flights: SingleFlight[str]):
    one, two = Question("one"), Question("two")
    tasks = await started(flights.fly("a", one), flights.fly("b", two))
    two.let.set()
    assert await tasks[1] == Flown("two", led=True)
    one.let.set()
    assert await tasks[0] == Flown("one", led=True)


async def test_an_answer_is_not_kept(flights: SingleFlight[str]):
    question = Question()
    question.let.set()
    assert (await flights.fly("key", question)).led
    assert (await flights.fly("key", question)).led
    assert question.asked == 2


@pytest.mark.parametrize("fault", [SharedFault(), SharedKind()])
async def test_a_shared_fault_is_everybody_s_once(flights: SingleFlight[str], fault: Exception):
    question = Question(fault)
    tasks = await started(*(flights.fly("key", question) for _ in range(4)))
    question.let.set()
    assert await outcomes(tasks) == [fault] * 4
    assert question.asked == 1


async def fail(task: asyncio.Task[object], question: Question) -> None:
    question.outcome = OwnFault()
    question.let.set()
    await asyncio.wait({task})


async def cancel(task: asyncio.Task[object], question: Question) -> None:
    task.cancel()
    await asyncio.wait({task})


@pytest.mark.parametrize("end", [fail, cancel])
async def test_when_the_leader_falls_the_next_leads_with_its_own_question(
    flights: SingleFlight[str], end: Callable[[asyncio.Task[object], Question], Awaitable[None]]
):
    questions = [Question(f"answer {number}") for number in range(4)]
    tasks = await started(*(flights.fly("key", question) for question in questions))
    await end(tasks[0], questions[0])
    await end(tasks[1], questions[1])
    questions[2].let.set()
    results = await outcomes(tasks)
    assert results[2:] == [Flown("answer 2", led=True), Flown("answer 2", led=False)]
    assert [question.asked for question in questions] == [1, 1, 1, 0]


async def test_a_cancelled_waiter_disturbs_nobody(flights: SingleFlight[str]):
    question = Question()
    tasks = await started(*(flights.fly("key", question) for _ in range(3)))
    await cancel(tasks[1], question)
    question.let.set()
    results = await outcomes(tasks)
    assert isinstance(results[1], asyncio.CancelledError)
    assert [results[0], results[2]] == [Flown("answer", led=True), Flown("answer", led=False)]
    assert question.asked == 1
