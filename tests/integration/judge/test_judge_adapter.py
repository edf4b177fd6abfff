"""The adapter against a judge that speaks real HTTP."""

import asyncio
import gc
import logging
import socket
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.adapters.clock import SystemClock
from app.adapters.judge_models import JudgeModels, load_models
from app.domain.errors import ContextOverflow, JudgeTimeout, JudgeUnavailable, NotConfigured
from app.ports import ChatModel, FinishReason, Prompt
from app.settings import Settings
from tests.stub_judge.server import StubJudge, running_stub
from tests.unit.fakes import TelemetryLog

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["opinions"],
    "properties": {"opinions": {"type": "array", "maxItems": 2, "items": {"type": "integer", "enum": [1, 2]}}},
}
PATIENCE_S = 20.0


def prompt(user: str = "[1] Tea is always best.\n[2] Tea is a drink.") -> Prompt:
    return Prompt(system="Which are opinions?", user=user, schema=SCHEMA, name="opinions", max_tokens=100)


class Counts(TelemetryLog):
    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[str] = []
        self.retries: list[str] = []

    def judge_called(self, _model: str, outcome: str, *_: Any) -> None:
        self.outcomes.append(str(outcome))

    def judge_retried(self, _model: str, cause: str) -> None:
        self.retries.append(str(cause))


class Setting:
    """A stub, the models that point to it, and what they reported."""

    def __init__(self, stub: StubJudge, models: JudgeModels, counts: Counts) -> None:
        self.stub = stub
        self.models = models
        self.counts = counts
        self.clock = SystemClock()

    @property
    def model(self) -> ChatModel:
        assert self.models.default is not None
        return self.models.get(self.models.default)

    async def ask(self, user: str = prompt().user, *, within_s: float = PATIENCE_S, logprobs: int = 0) -> Any:
        asked = replace(prompt(user), logprobs=logprobs)
        return await self.model.complete(asked, deadline=self.clock.monotonic() + within_s)


@asynccontextmanager
async def setting(**settings: Any) -> AsyncIterator[Setting]:
    async with running_stub() as stub:
        counts = Counts()
        chosen = {"judge_model": "stub/judge", "judge_base_url": stub.url, "judge_api_key": "sk-test"} | settings
        models = load_models(Settings(_env_file=None, **chosen), SystemClock(), counts, {})  # type: ignore[arg-type]
        try:
            yield Setting(stub, models, counts)
        finally:
            await models.aclose()


@pytest.fixture
async def judge() -> AsyncIterator[Setting]:
    async with setting() as made:
        yield made


async def test_a_reply_and_what_was_sent_for_it(judge: Setting) -> None:
    answer = await judge.ask()

    assert (answer.text, answer.finish, answer.model) == ('{"opinions":[1]}', FinishReason.STOP, "stub/judge")
    assert answer.input_tokens > 0
    (request,) = judge.stub.calls()["requests"]
    assert request["path"] == "/v1/chat/completions"
    assert request["headers"]["authorization"] == "Bearer sk-test"
    assert request["headers"]["content-type"] == "application/json"
    assert request["body"]["temperature"] == 0.0
    assert request["body"]["response_format"]["json_schema"]["schema"] == SCHEMA


async def test_a_judge_that_tells_how_likely_its_tokens_are(judge: Setting) -> None:
    judge.stub.script.add({"logprobs": {}, "times": None})

    answer = await judge.ask(logprobs=5)

    assert b"".join(token.text for token in answer.tokens).decode() == answer.text
    assert {token.probability for token in answer.tokens} == {1.0}
    assert (await judge.ask()).tokens is None


async def test_a_judge_that_refuses_to_tell_answers_all_the_same(judge: Setting) -> None:
    refusal = {"error": {"message": "logprobs are not supported", "param": "logprobs"}}
    judge.stub.script.add({"when": {"logprobs": None}, "status": 400, "body": refusal})

    for _ in range(2):
        assert (await judge.ask(logprobs=20)).tokens is None

    asked = [request["body"].get("logprobs") for request in judge.stub.calls()["requests"]]
    assert asked == [True, None, None]


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ({"drop": "before"}, "connection"),
        ({"drop": "mid_body"}, "connection"),
        ({"status": 429, "headers": {"retry-after-ms": "1"}}, "rate_limited"),
        ({"status": 500, "body": {"error": {"message": "sorry"}}}, "server_error"),
        ({"status": 529, "body": "<html>overloaded</html>", "headers": {"content-type": "text/html"}}, "server_error"),
        ({"body": "<html>hello</html>", "headers": {"content-type": "text/html"}}, "invalid_body"),
        ({"body": {"error": {"message": "rate limit"}}}, "invalid_body"),
        ({"body": '{"choices": [{"message": {"content": "cut'}, "invalid_body"),
        ({"body": {"choices": []}}, "invalid_body"),
    ],
)
async def test_passing_trouble_on_the_wire(judge: Setting, rule: dict[str, Any], outcome: str) -> None:
    judge.stub.script.add(rule)

    assert (await judge.ask()).text == '{"opinions":[1]}'
    assert judge.counts.outcomes == [outcome, "ok"]
    assert judge.counts.retries == [outcome]


async def test_a_connection_that_the_server_closed_while_idle_costs_one_retry_at_most(judge: Setting) -> None:
    await judge.ask()
    judge.stub.close_connections()

    assert (await judge.ask()).text == '{"opinions":[1]}'
    assert judge.counts.outcomes in (["ok", "ok"], ["ok", "connection", "ok"])


async def test_a_silent_server_is_given_up_and_tried_again() -> None:
    async with setting(judge_timeout_s=0.2) as judge:
        judge.stub.script.add({"hang": True})

        assert (await judge.ask()).text == '{"opinions":[1]}'
        assert judge.counts.outcomes == ["timeout", "ok"]


async def test_a_silent_server_never_outlasts_the_deadline(judge: Setting) -> None:
    judge.stub.script.add({"hang": True, "times": None})

    with pytest.raises(JudgeTimeout):
        await judge.ask(within_s=0.2)

    assert judge.counts.outcomes == ["timeout"]


async def test_an_answer_that_never_ends_is_cut_off(judge: Setting) -> None:
    judge.stub.script.add({"body": " " * 5_000_000, "times": None})

    with pytest.raises(JudgeUnavailable, match="larger than"):
        await judge.ask()


async def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with setting(judge_base_url=url, judge_max_retries=1) as judge:
            with pytest.raises(JudgeUnavailable, match="can't be reached"):
                await judge.ask()

    assert judge.counts.outcomes == ["connection", "connection"]


async def test_a_host_that_does_not_exist() -> None:
    async with setting(judge_base_url="http://no-such-host.invalid", judge_max_retries=0) as judge:
        with pytest.raises(JudgeUnavailable, match="base URL"):
            await judge.ask()


async def test_a_server_that_speaks_no_http() -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-babble\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with setting(judge_base_url=url, judge_max_retries=1) as judge:
            with pytest.raises(JudgeUnavailable):
                await judge.ask()

    assert judge.counts.outcomes == ["connection", "connection"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(judge: Setting, status: int) -> None:
    judge.stub.script.add({"status": status, "headers": {"location": f"{judge.stub.url}/v1/chat/completions"}})

    with pytest.raises(NotConfigured, match="redirects"):
        await judge.ask()

    assert judge.stub.total == 1


async def test_cookies_are_not_kept(judge: Setting) -> None:
    judge.stub.script.add({"status": 500, "headers": {"set-cookie": "server=7; Path=/"}})

    await judge.ask()

    assert all("cookie" not in request["headers"] for request in judge.stub.calls()["requests"])


async def test_what_the_text_costs_is_told_by_the_provider(judge: Setting) -> None:
    judge.stub.script.add({"status": 400, "body": {"error": {"code": "context_length_exceeded", "message": "long"}}})

    with pytest.raises(ContextOverflow):
        await judge.ask()


@pytest.mark.parametrize(
    ("rule", "finish", "text"),
    [
        ({"refuse": True}, FinishReason.REFUSAL, None),
        ({"cut": True}, FinishReason.LENGTH, '{"opinio'),
        ({"empty": True}, FinishReason.STOP, ""),
        ({"reply": "half \ud835 here"}, FinishReason.STOP, "half � here"),
        ({"fence": True}, FinishReason.STOP, '```json\n{"opinions":[1]}\n```'),
    ],
)
async def test_replies_of_every_kind_are_answers(
    judge: Setting, rule: dict[str, Any], finish: FinishReason, text: str | None
) -> None:
    judge.stub.script.add(rule)

    answer = await judge.ask()

    assert answer.finish is finish
    assert text is None or answer.text == text
    assert judge.stub.total == 1


async def test_a_provider_without_schemas_is_understood_and_remembered(judge: Setting) -> None:
    for asked in ("json_schema", "json_object"):
        complaint = {"error": {"message": f"response_format {asked} is not supported"}}
        judge.stub.script.add(
            {"when": {"response_format.type": asked}, "times": None, "status": 400, "body": complaint}
        )

    answers = await asyncio.gather(*(judge.ask() for _ in range(10)))
    paid = judge.stub.total
    answers.append(await judge.ask())

    assert {answer.text for answer in answers} == {'{"opinions":[1]}'}
    assert paid <= 10 + 10 + 1
    assert judge.stub.total == paid + 1


async def test_many_calls_at_once_keep_their_answers_apart(judge: Setting) -> None:
    judge.stub.delay_ms = 20.0

    async def ask(number: int) -> None:
        tail = "always" if number % 2 else "sometimes"
        answer = await judge.ask(f"[1] Line {number} is {tail} long.")
        assert answer.text == ('{"opinions":[1]}' if number % 2 else '{"opinions":[]}')

    await asyncio.gather(*(ask(number) for number in range(300)))

    assert judge.counts.outcomes == ["ok"] * 300
    assert judge.stub.max_in_flight > 150


async def test_calls_in_flight_are_limited_for_each_judge() -> None:
    async with setting(judge_max_in_flight=7) as judge:
        judge.stub.delay_ms = 5.0

        await asyncio.gather(*(judge.ask() for _ in range(50)))

        assert judge.stub.max_in_flight == 7


async def test_connections_are_used_again(judge: Setting) -> None:
    for _ in range(5):
        await judge.ask()

    assert judge.stub.connections == 1


async def test_a_cancelled_call_is_counted_and_frees_its_slot() -> None:
    async with setting(judge_max_in_flight=1) as judge:
        judge.stub.script.add({"hang": True})
        task = asyncio.create_task(judge.ask())
        await judge.stub.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert (await judge.ask()).text == '{"opinions":[1]}'
        assert judge.counts.outcomes == ["cancelled", "ok"]


async def test_two_judges_of_a_file_share_a_server_but_not_a_key(tmp_path: Path) -> None:
    async with running_stub() as stub:
        entries = "".join(
            f'[[models]]\nid = "stub/{name}"\nbase_url = "{stub.url}"\nmodel = "m-{name}"\napi_key_env = "KEY_{name}"\n'
            for name in "ab"
        )
        (tmp_path / "models.toml").write_text(f'default = "stub/a"\n{entries}', "utf-8")
        settings = Settings(_env_file=None, models_file=tmp_path / "models.toml")
        clock = SystemClock()
        models = load_models(settings, clock, Counts(), {"KEY_a": "sk-a", "KEY_b": "sk-b"})  # type: ignore[arg-type]

        for model_id in models.ids:
            answer = await models.get(model_id).complete(prompt(), deadline=clock.monotonic() + PATIENCE_S)
            assert answer.model == model_id
        await models.aclose()

    sent = [(call["body"]["model"], call["headers"]["authorization"]) for call in stub.calls()["requests"]]
    assert sent == [("m-a", "Bearer sk-a"), ("m-b", "Bearer sk-b")]


async def test_nothing_is_left_open(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        async with setting() as judge:
            await asyncio.gather(*(judge.ask() for _ in range(3)))
        del judge
        gc.collect()

    assert caplog.records == []


async def test_models_that_never_called_close_quietly() -> None:
    async with setting():
        pass
