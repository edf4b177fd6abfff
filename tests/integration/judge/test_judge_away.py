"""Judges that fail, are down or limited, over real HTTP and a real Valkey; each JudgeModels stands for a process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.adapters.breaker import FAILURES
from app.adapters.clock import SystemClock
from app.adapters.judge_models import JudgeModels, load_models
from app.adapters.redis_client import connect
from app.cli import checks
from app.cli.finding import Level
from app.domain.errors import AssayError, JudgeUnavailable
from app.domain.run import RunStatus
from app.ports import Completion, Prompt
from app.settings import Settings
from tests.stub_judge.server import StubJudge, running_stub
from tests.unit.adapters.chat_fakes import LentSlot
from tests.unit.fakes import TelemetryLog
from tests.unit.judge.runs import Bench

pytestmark = pytest.mark.anyio

CLOCK = SystemClock()
PATIENCE_S = 30.0
PROMPT = Prompt(
    system="Which are opinions?",
    user="[1] Tea is always best.\n[2] Tea is a drink.",
    schema={
        "type": "object",
        "required": ["opinions"],
        "properties": {"opinions": {"type": "array", "items": {"type": "integer", "enum": [1, 2]}}},
    },
    name="opinions",
    max_tokens=100,
)
ANSWER = '{"opinions":[1]}'
SORRY = {"error": {"message": "sorry"}}


class Process:
    """The judges of one process, and what they reported."""

    def __init__(self, models: JudgeModels, telemetry: TelemetryLog) -> None:
        self.models = models
        self.telemetry = telemetry
        self.slot = LentSlot()

    @property
    def model(self) -> Any:
        assert self.models.default is not None
        return self.models.get(self.models.default)

    async def ask(self, *, queued: bool = False, within_s: float = PATIENCE_S) -> Completion:
        slot = self.slot if queued else None
        return await self.model.complete(PROMPT, deadline=CLOCK.monotonic() + within_s, slot=slot)

    @property
    def states(self) -> list[str]:
        return [str(state) for _, state in self.telemetry.of("breaker_changed")]


Start = Callable[..., Process]


@pytest.fixture
async def stub() -> AsyncIterator[StubJudge]:
    async with running_stub() as stub:
        yield stub


@pytest.fixture
async def start(stub: StubJudge, valkey_url: str) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        def process(environ: dict[str, str] | None = None, **settings: Any) -> Process:
            client = connect(valkey_url)
            stack.push_async_callback(client.aclose)
            telemetry = TelemetryLog()
            named = {"judge_model": "stub/judge", "judge_base_url": stub.url, "judge_timeout_s": 0.3}
            chosen = Settings(_env_file=None, **(named | settings))
            models = load_models(chosen, CLOCK, telemetry, environ or {}, client)  # type: ignore[arg-type]
            stack.push_async_callback(models.aclose)
            models.start()
            return Process(models, telemetry)

        yield process


@asynccontextmanager
async def down(stub: StubJudge) -> AsyncIterator[None]:
    stub.doors[0].shut()
    stub.close_connections()
    yield
    await stub.doors[0].open()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - it happens on the other side of a socket
            await asyncio.sleep(0.01)


async def outcomes(calls: list[Awaitable[Completion]]) -> list[Completion | AssayError]:
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(outcome, Completion | AssayError) for outcome in found), found
    return found  # type: ignore[return-value]


@pytest.mark.parametrize(
    "rule",
    [
        {"hang": True},
        {"status": 500, "body": SORRY},
        {"status": 529, "body": SORRY},
        {"status": 503, "body": SORRY, "headers": {"retry-after": "1"}},
        {"status": 429, "body": SORRY, "headers": {"retry-after-ms": "300"}},
        {"status": 429, "body": SORRY},
        {"drop": "mid_body"},
        {"drop": "before"},
        {"body": "<html>hello</html>"},
    ],
    ids=str,
)
async def test_a_queued_call_waits_until_its_judge_is_well(stub: StubJudge, start: Start, rule: dict[str, Any]) -> None:
    process = start()
    stub.script.add({**rule, "times": None})
    asked = asyncio.create_task(process.ask(queued=True))
    # The first pauses may be too short to lend a slot for.
    await until(lambda: stub.total >= 2 and process.slot.times > 0)
    stub.script.clear()

    assert (await asked).text == ANSWER
    assert process.slot.times > 0
    assert process.slot.lent_now == 0


async def test_queued_calls_wait_for_a_judge_that_is_down(stub: StubJudge, start: Start) -> None:
    process = start()
    async with down(stub):
        asked = [asyncio.create_task(process.ask(queued=True)) for _ in range(30)]
        await until(lambda: "half_open" in process.states)
        assert not any(task.done() for task in asked)

    assert [(await task).text for task in asked] == [ANSWER] * 30
    assert process.states[-1] == "closed"
    assert stub.total == 30


async def test_few_calls_reach_a_judge_whose_breaker_is_open(stub: StubJudge, start: Start) -> None:
    process = start(judge_max_retries=0)
    stub.script.add({"status": 500, "body": SORRY, "times": None})
    for _ in range(FAILURES):
        await outcomes([process.ask()])
    assert process.states == ["closed", "open"]

    refused = await outcomes([process.ask() for _ in range(100)])

    # One that finds out may be among them, on a slow machine.
    assert stub.total <= FAILURES + 1
    left_alone = [error for error in refused if isinstance(error, JudgeUnavailable) and "left alone" in error.detail]
    assert len(left_alone) >= 99
    stub.script.clear()
    await process.ask(queued=True)
    assert process.states[2:] == ["half_open", "closed"]


async def test_a_half_open_breaker_lets_one_call_through(stub: StubJudge, start: Start) -> None:
    process = start(judge_max_retries=0)
    stub.script.add({"status": 500, "body": SORRY, "times": FAILURES})
    stub.script.add({"delay_ms": 150.0, "times": 1})
    for _ in range(FAILURES):
        await outcomes([process.ask()])
    stub.max_in_flight = 0

    asked = [asyncio.create_task(process.ask(queued=True)) for _ in range(20)]
    await until(lambda: stub.total > FAILURES)
    assert stub.max_in_flight == 1
    await asyncio.gather(*asked)

    assert stub.total == FAILURES + 20


async def test_processes_keep_a_limit_of_requests_together(stub: StubJudge, start: Start) -> None:
    processes = [start(judge_requests_per_minute=12) for _ in range(5)]

    ended = await outcomes([process.ask(within_s=2.0) for process in processes for _ in range(10)])

    assert stub.total == 12
    assert sum(isinstance(outcome, Completion) for outcome in ended) == 12
    refusals = [outcome for outcome in ended if isinstance(outcome, JudgeUnavailable)]
    assert all("requests a minute" in refusal.detail and refusal.own_deadline for refusal in refusals)
    assert {call[1] for process in processes for call in process.telemetry.of("judge_waited")} == {"requests"}


async def test_who_waits_for_room_does_not_wait_for_a_judge_that_failed_meanwhile(
    stub: StubJudge, start: Start
) -> None:
    process = start(judge_requests_per_minute=FAILURES, judge_max_retries=0, judge_timeout_s=10)
    stub.script.add({"status": 500, "body": SORRY, "delay_ms": 100.0, "times": None})

    ended = await outcomes([process.ask() for _ in range(FAILURES + 3)])

    details = [error.detail for error in ended if isinstance(error, JudgeUnavailable)]
    assert stub.total == FAILURES
    assert sum("left alone" in detail for detail in details) == 3


async def test_who_waits_for_room_is_held_back_by_a_pause(stub: StubJudge, start: Start) -> None:
    process = start(judge_max_in_flight_total=1, judge_max_retries=0, judge_timeout_s=10)
    stub.script.add({"status": 429, "body": SORRY, "headers": {"retry-after": "20"}, "delay_ms": 100.0})

    ended = await outcomes([process.ask(within_s=15.0) for _ in range(4)])

    assert stub.total == 1
    assert all(isinstance(error, JudgeUnavailable) for error in ended)


async def test_processes_keep_a_limit_of_tokens_together(stub: StubJudge, start: Start) -> None:
    processes = [start(judge_tokens_per_minute=2_000) for _ in range(4)]

    ended = await outcomes([process.ask(within_s=4.0) for process in processes for _ in range(40)])

    used = sum(ended.input_tokens + ended.output_tokens for ended in ended if isinstance(ended, Completion))
    # Six calls set all of it aside; what they do not use is there for more.
    assert 500 < used <= 2_000
    assert {call[1] for process in processes for call in process.telemetry.of("judge_waited")} == {"tokens"}


async def test_processes_keep_a_limit_of_calls_at_once_together(stub: StubJudge, start: Start) -> None:
    processes = [start(judge_max_in_flight_total=3, judge_timeout_s=10) for _ in range(4)]
    stub.delay_ms = 20.0

    await asyncio.gather(*(process.ask() for process in processes for _ in range(8)))

    assert (stub.total, stub.max_in_flight) == (32, 3)


@pytest.mark.parametrize("rule", [{"status": 500, "body": SORRY}, {"hang": True}, {"drop": "before"}], ids=str)
async def test_a_call_that_fails_gives_its_place_back(stub: StubJudge, start: Start, rule: dict[str, Any]) -> None:
    process = start(judge_max_in_flight_total=1, judge_max_retries=0)
    stub.script.add(rule)
    await outcomes([process.ask()])

    assert (await process.ask(within_s=5.0)).text == ANSWER


async def test_a_cancelled_call_gives_its_place_back(stub: StubJudge, start: Start) -> None:
    process = start(judge_max_in_flight_total=1, judge_timeout_s=30)
    stub.script.add({"hang": True})
    task = asyncio.create_task(process.ask())
    await stub.asked.wait()
    task.cancel()
    await asyncio.wait({task})

    assert (await process.ask(within_s=5.0)).text == ANSWER


async def test_a_wait_for_room_lends_the_slot(stub: StubJudge, start: Start) -> None:
    process = start(judge_max_in_flight_total=1, judge_timeout_s=30)
    stub.script.add({"delay_ms": 600.0})
    first = asyncio.create_task(process.ask())
    await stub.asked.wait()
    second = asyncio.create_task(process.ask(queued=True))
    await until(lambda: process.slot.lent_now)
    await asyncio.gather(first, second)

    assert (process.slot.times, process.slot.lent_now) == (1, 0)


async def test_a_judge_without_limits_costs_redis_nothing(stub: StubJudge, start: Start, valkey_url: str) -> None:
    process = start()
    await process.models.get("stub/judge").complete(PROMPT, deadline=CLOCK.monotonic() + PATIENCE_S)
    client = connect(valkey_url)
    keys = await client.keys("assay:{judges}:*")
    await client.aclose()

    assert keys == []


async def test_retry_after_holds_back_every_process(stub: StubJudge, start: Start) -> None:
    one, other = start(judge_max_retries=0), start(judge_max_retries=0)
    stub.script.add({"status": 429, "body": SORRY, "headers": {"retry-after": "20"}})
    await outcomes([one.ask()])
    await until(other.model._gate.held_s)

    ended = await outcomes([process.ask() for process in (one, other) for _ in range(10)])

    assert stub.total == 1
    assert all(isinstance(error, JudgeUnavailable) and "not to be called" in error.detail for error in ended)


def with_spare(folder: Path, stub: StubJudge, spare: StubJudge) -> dict[str, Any]:
    """Return the settings of a judge with a fallback."""
    (folder / "models.toml").write_text(
        f'default = "main/judge"\n'
        f'[[models]]\nid = "main/judge"\nbase_url = "{stub.url}"\nfallbacks = ["spare/judge"]\n'
        f'[[models]]\nid = "spare/judge"\nbase_url = "{spare.url}"\n'
    )
    return {"judge_model": None, "judge_base_url": None, "models_file": folder / "models.toml"}


async def test_doctor_is_not_deceived_by_a_fallback(stub: StubJudge, tmp_path: Path) -> None:
    async with running_stub() as spare:
        settings = Settings(_env_file=None, judge_max_retries=0, **with_spare(tmp_path, stub, spare))
        async with down(stub):
            found = await checks.judge(settings, {})

    assert [(finding.level, "not available" in finding.detail) for finding in found] == [
        (Level.WARN, True),
        (Level.OK, False),
    ]


async def test_a_fallback_judges_a_run_and_is_named_on_it(stub: StubJudge, start: Start, tmp_path: Path) -> None:
    async with running_stub() as spare:
        process = start(**with_spare(tmp_path, stub, spare))
        bench = Bench(process.model)
        bench.judge = replace(bench.judge, clock=CLOCK)
        async with down(stub):
            run = await bench.score("Women can't drive.", deadline=CLOCK.monotonic() + PATIENCE_S)

        assert run.status is RunStatus.COMPLETED
        assert run.model == "spare/judge"
        assert [warning.code for warning in run.warnings] == ["fallback_model"]
        assert spare.total > 0
        assert process.telemetry.of("judge_fell_back")[0] == ("main/judge", "spare/judge")


async def test_usage_takes_the_place_of_what_was_set_aside(stub: StubJudge, start: Start, valkey_url: str) -> None:
    process = start(judge_tokens_per_minute=100_000)
    answer = await process.ask()
    await process.models.aclose()
    client = connect(valkey_url)
    (window,) = await client.keys("assay:{judges}:window:*")
    counted = sum(int(count) for field, count in (await client.hgetall(window)).items() if field.startswith(b"t"))
    await client.aclose()

    assert counted == answer.input_tokens + answer.output_tokens > 0
