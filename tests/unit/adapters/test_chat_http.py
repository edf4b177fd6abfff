import asyncio
import json
import traceback
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.domain.errors import AssayError, ContextOverflow, JudgeTimeout, JudgeUnavailable, NotConfigured
from app.ports import FinishReason, Token
from tests.unit.adapters.chat_fakes import KEY, PROMPT, TEXT, Harness, completion, in_turn, refusal

pytestmark = pytest.mark.anyio

HTML = httpx.Response(200, html="<html>secret page</html>")


async def fail(harness: Harness, deadline: float | None = None) -> AssayError:
    with pytest.raises(AssayError) as caught:
        await harness.model.complete(PROMPT, deadline=deadline or harness.deadline)
    return caught.value


async def test_a_good_answer() -> None:
    harness = Harness(in_turn(completion()), input_price=0.5, output_price=10.0)

    answer = await harness.model.complete(PROMPT, deadline=harness.deadline)

    assert (answer.text, answer.finish, answer.model) == (TEXT, FinishReason.STOP, "acme/judge")
    assert (answer.input_tokens, answer.output_tokens, answer.cost_usd) == (40, 8, pytest.approx(0.0001))
    assert harness.counts.calls == [("acme/judge", "ok", 0.0, 40, 8, answer.cost_usd)]
    assert harness.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert harness.requests[0].url == "http://judge.test/v1/chat/completions"


async def test_unknown_prices_are_no_cost_rather_than_zero() -> None:
    harness = Harness(in_turn(completion()))

    assert (await harness.model.complete(PROMPT, deadline=harness.deadline)).cost_usd is None


@pytest.mark.parametrize(
    ("reasoning_tokens", "max_output_tokens", "sent"), [(0, 4_096, 300), (1_000, 4_096, 1_300), (0, 200, 200)]
)
async def test_the_token_limit(reasoning_tokens: int, max_output_tokens: int, sent: int) -> None:
    harness = Harness(in_turn(completion()), reasoning_tokens=reasoning_tokens, max_output_tokens=max_output_tokens)

    await harness.model.complete(PROMPT, deadline=harness.deadline)

    assert harness.bodies[0]["max_tokens"] == sent


@pytest.mark.parametrize(
    ("answer", "finish", "outcome"),
    [
        (completion(TEXT[:9], finish="length"), FinishReason.LENGTH, "ok"),
        (completion(""), FinishReason.STOP, "ok"),
        (completion(None, refusal="I can't."), FinishReason.REFUSAL, "refused"),
        (completion("", finish="content_filter"), FinishReason.REFUSAL, "refused"),
        (refusal(400, "The response was filtered", code="content_filter"), FinishReason.REFUSAL, "refused"),
        (refusal(400, "x", innererror={"code": "ResponsibleAIPolicyViolation"}), FinishReason.REFUSAL, "refused"),
        (refusal(403, "Your input was flagged"), FinishReason.REFUSAL, "refused"),
    ],
)
async def test_cut_empty_and_refused_replies_are_answers(
    answer: httpx.Response, finish: FinishReason, outcome: str
) -> None:
    harness = Harness(in_turn(answer))

    assert (await harness.model.complete(PROMPT, deadline=harness.deadline)).finish is finish
    assert harness.counts.outcomes == [outcome]


PASSING: list[tuple[httpx.Response | Exception, str]] = [
    *[(refusal(status, "later"), "server_error") for status in (408, 409, 425, 500, 502, 503, 504, 520, 529)],
    (refusal(429, "slow down"), "rate_limited"),
    (httpx.ConnectError("refused"), "connection"),
    (httpx.ReadError("reset"), "connection"),
    (httpx.RemoteProtocolError("closed"), "connection"),
    (httpx.WriteError("broken pipe"), "connection"),
    (ConnectionResetError(), "connection"),
    (httpx.ReadTimeout("slow"), "timeout"),
    (httpx.ConnectTimeout("slow"), "timeout"),
    (HTML, "invalid_body"),
    (httpx.Response(200, json={"error": {"message": "upstream"}}), "invalid_body"),
    (httpx.Response(200, json={"choices": []}), "invalid_body"),
    (httpx.Response(200, content=b'{"choices": [{"mess'), "invalid_body"),
    (httpx.Response(204), "invalid_body"),
]


@pytest.mark.parametrize(("trouble", "outcome"), PASSING)
async def test_passing_trouble_is_tried_again(trouble: httpx.Response | Exception, outcome: str) -> None:
    harness = Harness(in_turn(trouble, completion()))

    answer = await harness.model.complete(PROMPT, deadline=harness.deadline)

    assert answer.text == TEXT
    assert harness.counts.outcomes == [outcome, "ok"]
    assert harness.counts.retries == [("acme/judge", outcome)]
    assert harness.requests[0].content == harness.requests[1].content


@pytest.mark.parametrize(("trouble", "outcome"), PASSING)
async def test_lasting_trouble_ends_after_the_retries(trouble: httpx.Response | Exception, outcome: str) -> None:
    harness = Harness(in_turn(trouble))

    error = await fail(harness)

    assert isinstance(error, JudgeTimeout if outcome == "timeout" else JudgeUnavailable)
    assert harness.counts.outcomes == [outcome] * 3
    assert "2 retries did not help" in error.detail


REJECTED: list[tuple[httpx.Response, type[AssayError], str]] = [
    (refusal(401, "bad key"), NotConfigured, "ACME_API_KEY"),
    (refusal(403, "no access"), NotConfigured, "ACME_API_KEY"),
    (refusal(400, "API key not valid. Please pass a valid API key."), NotConfigured, "ACME_API_KEY"),
    (refusal(400, "Incorrect API key provided"), NotConfigured, "ACME_API_KEY"),
    (refusal(402, "pay"), NotConfigured, "credit"),
    (refusal(429, "You exceeded your quota", code="insufficient_quota"), NotConfigured, "credit"),
    (refusal(400, "Your credit balance is too low"), NotConfigured, "credit"),
    (refusal(400, "bad request"), NotConfigured, "parameters"),
    (refusal(422, "bad request"), NotConfigured, "parameters"),
    (refusal(404, "no such model"), NotConfigured, "name and its base URL"),
    (refusal(405, "not allowed"), NotConfigured, "base URL"),
    (httpx.Response(301, headers={"location": "http://elsewhere.test/"}), NotConfigured, "redirects"),
    (httpx.Response(308, headers={"location": "http://elsewhere.test/"}), NotConfigured, "redirects"),
    (refusal(400, "x", code="context_length_exceeded"), ContextOverflow, "too long"),
    (refusal(400, "This model's maximum context length is 8192 tokens"), ContextOverflow, "too long"),
    (refusal(400, "input length and `max_tokens` exceed context limit: 9 + 8 > 16"), ContextOverflow, "too long"),
    (refusal(400, "prompt is too long: 210000 tokens > 200000 maximum"), ContextOverflow, "too long"),
    (refusal(400, "The input token count (9) exceeds the maximum number of tokens allowed"), ContextOverflow, "long"),
    (refusal(400, "x", type="exceed_context_size_error"), ContextOverflow, "too long"),
    (refusal(500, "the request exceeds the available context size"), ContextOverflow, "too long"),
    (refusal(400, "Invalid 'messages[1].content'", code="string_above_max_length"), ContextOverflow, "too long"),
    (refusal(413, "payload too large"), ContextOverflow, "too long"),
    (refusal(501, "not implemented"), JudgeUnavailable, "501"),
]


@pytest.mark.parametrize(("answer", "kind", "says"), REJECTED)
async def test_what_no_retry_can_help_fails_at_once(answer: httpx.Response, kind: type[AssayError], says: str) -> None:
    harness = Harness(in_turn(answer))

    error = await fail(harness)

    assert type(error) is kind
    assert says in error.detail
    assert len(harness.requests) == 1
    assert harness.waits == []


@pytest.mark.parametrize("answer", [answer for answer, *_ in PASSING + REJECTED])
async def test_no_error_shows_the_key_the_text_or_the_body(answer: httpx.Response | Exception) -> None:
    harness = Harness(in_turn(answer))

    error = await fail(harness)

    shown = error.detail + "".join(traceback.format_exception(error)) + repr(harness.model) + harness.model.identity
    assert KEY not in shown
    assert PROMPT.user not in shown
    assert "secret page" not in shown


async def test_the_detail_of_an_odd_answer_shows_status_and_content_type() -> None:
    assert "(200, text/html)" in (await fail(Harness(in_turn(HTML)))).detail


@pytest.mark.parametrize("header", ["x" * 200, "text/html<script>", ""])
async def test_a_strange_content_type_is_not_repeated(header: str) -> None:
    answer = httpx.Response(503, headers={"content-type": header})

    detail = (await fail(Harness(in_turn(answer)))).detail

    assert "script" not in detail
    assert len(detail) < 120


@pytest.mark.parametrize(
    ("headers", "at_least"),
    [
        ({"retry-after": "20"}, 20.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:40 GMT"}, 40.0),
    ],
)
@pytest.mark.parametrize("status", [429, 503, 529])
async def test_retry_after_is_honoured(status: int, headers: dict[str, str], at_least: float) -> None:
    harness = Harness(in_turn(httpx.Response(status, headers=headers), completion()))

    await harness.model.complete(PROMPT, deadline=harness.deadline)

    assert at_least <= harness.waits[0] <= at_least + 8.0


@pytest.mark.parametrize("value", ["60", "3600", "Mon, 30 Nov 2026 13:00:00 GMT"])
async def test_retry_after_beyond_the_deadline_fails_at_once_and_says_so(value: str) -> None:
    harness = Harness(in_turn(httpx.Response(429, headers={"retry-after": value}), completion()))

    error = await fail(harness)

    assert isinstance(error, JudgeUnavailable)
    assert "longer than this run's deadline" in error.detail
    assert harness.waits == []


async def test_retries_stop_at_the_deadline() -> None:
    harness = Harness(in_turn(refusal(429, "later")), max_retries=1_000)

    error = await fail(harness)

    assert isinstance(error, JudgeUnavailable)
    assert "no time for another try" in error.detail
    assert harness.clock.seconds < 1_060.0
    assert 3 < len(harness.requests) < 1_000


async def test_no_call_after_the_deadline() -> None:
    harness = Harness(in_turn(completion()))

    error = await fail(harness, deadline=harness.clock.seconds)

    assert isinstance(error, JudgeTimeout)
    assert harness.requests == []


async def test_an_attempt_never_outlives_the_deadline_or_its_own_limit() -> None:
    harness = Harness(in_turn(completion()), timeout_s=20.0)

    for left in (60.0, 5.0):
        await harness.model.complete(PROMPT, deadline=harness.clock.seconds + left)

    limits = [request.extensions["timeout"] for request in harness.requests]
    assert limits == [
        {"connect": 5.0, "read": 20.0, "write": 20.0, "pool": None},
        {"connect": 5.0, "read": 5.0, "write": 5.0, "pool": None},
    ]


class StrictProvider:
    """Refuses what `refuses` names, as providers do: the first thing it stumbles over, one at a time."""

    def __init__(self, *refuses: str) -> None:
        self.refuses = refuses

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        message = next((self.complaints(body)[name] for name in self.refuses if self.complaints(body)[name]), None)
        return completion() if message is None else refusal(400, message)

    @staticmethod
    def complaints(body: dict[str, Any]) -> dict[str, str | None]:
        wanted = body.get("response_format", {})
        schema = wanted.get("json_schema", {})
        system = any(message["role"] == "system" for message in body["messages"])
        return {
            "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            if "max_tokens" in body
            else None,
            "max_completion_tokens": "max_completion_tokens: extra" if "max_completion_tokens" in body else None,
            "temperature": "'temperature' does not support 0 with this model" if "temperature" in body else None,
            "seed": "body.seed: extra inputs are not permitted" if "seed" in body else None,
            "system": "System role not supported" if system else None,
            "limits": "invalid schema for response_format: minItems is not supported"
            if "minItems" in json.dumps(schema)
            else None,
            "strict": "response_format.json_schema.strict is not supported" if schema.get("strict") else None,
            "json_schema": "This response_format type is unavailable now" if schema else None,
            "json_object": "'response_format.type' must be 'text'" if wanted.get("type") == "json_object" else None,
        }


QUIRKS = [
    ("max_tokens",),
    ("max_tokens", "max_completion_tokens"),
    ("temperature",),
    ("seed",),
    ("system",),
    ("limits",),
    ("strict",),
    ("limits", "strict"),
    ("json_schema",),
    ("json_schema", "json_object"),
    ("max_tokens", "temperature", "seed", "system", "json_schema", "json_object"),
]


@pytest.mark.parametrize("refuses", QUIRKS)
async def test_a_quirk_is_learned_once(refuses: tuple[str, ...]) -> None:
    harness = Harness(StrictProvider(*refuses), parameters={"temperature": 0.0, "seed": 7})

    answers = [await harness.model.complete(PROMPT, deadline=harness.deadline) for _ in range(3)]

    assert [answer.text for answer in answers] == [TEXT] * 3
    assert harness.counts.outcomes == ["rejected"] * len(refuses) + ["ok"] * 3
    assert harness.waits == []


@pytest.mark.parametrize("refuses", QUIRKS)
async def test_calls_that_start_together_pay_once_each_at_most(refuses: tuple[str, ...]) -> None:
    harness = Harness(StrictProvider(*refuses), parameters={"temperature": 0.0, "seed": 7})

    await asyncio.gather(*(harness.model.complete(PROMPT, deadline=harness.deadline) for _ in range(20)))

    rejected = harness.counts.outcomes.count("rejected")
    assert rejected <= 20 + len(refuses) - 1
    assert len(harness.requests) == rejected + 20


async def test_learning_survives_trouble_on_the_way() -> None:
    strict = StrictProvider("json_schema")
    providers = iter([strict, in_turn(refusal(503, "later")), strict, strict])

    def handler(request: httpx.Request) -> httpx.Response:
        return next(providers)(request)

    harness = Harness(handler)

    await harness.model.complete(PROMPT, deadline=harness.deadline)
    await harness.model.complete(PROMPT, deadline=harness.deadline)

    assert harness.counts.outcomes == ["rejected", "server_error", "ok", "ok"]


@pytest.mark.parametrize(
    "answer",
    [
        refusal(403, "You are not allowed to request logprobs from this model"),
        refusal(500, "logprobs is not supported for models created with logits_all=False"),
        refusal(400, "Logprobs is not enabled for models/small"),
    ],
)
async def test_a_judge_without_logprobs_is_not_asked_for_them_again(answer: httpx.Response) -> None:
    harness = Harness(in_turn(answer, completion()))
    prompt = replace(PROMPT, logprobs=5)

    for _ in range(2):
        assert (await harness.model.complete(prompt, deadline=harness.deadline)).tokens is None

    assert [body.get("top_logprobs") for body in harness.bodies] == [5, None, None]
    assert harness.waits == []


async def test_a_server_that_breaks_over_an_unknown_format_is_asked_in_a_simpler_one() -> None:
    broken = "1 validation error: {'loc': ('body', 'response_format', 'type'), 'msg': 'Input should be text'}"
    harness = Harness(in_turn(refusal(500, broken), completion()))

    for _ in range(2):
        await harness.model.complete(PROMPT, deadline=harness.deadline)

    formats = [body["response_format"]["type"] for body in harness.bodies]
    assert formats == ["json_schema", "json_object", "json_object"]
    assert harness.waits == []


@pytest.mark.parametrize("status", [403, 500])
async def test_other_complaints_teach_nothing_in_passing(status: int) -> None:
    harness = Harness(in_turn(refusal(status, "the temperature is wrong")), max_retries=0)

    await fail(harness)

    assert len(harness.requests) == 1


async def test_tokens_come_with_the_reply() -> None:
    token = {"token": TEXT, "logprob": 0.0, "bytes": None, "top_logprobs": []}
    answer = completion()
    body = json.loads(answer.content)
    body["choices"][0]["logprobs"] = {"content": [token]}
    harness = Harness(in_turn(httpx.Response(200, json=body)))

    told = await harness.model.complete(replace(PROMPT, logprobs=20), deadline=harness.deadline)

    assert told.tokens == (Token(TEXT.encode(), 1.0),)
    assert (harness.bodies[0]["logprobs"], harness.bodies[0]["top_logprobs"]) == (True, 20)


async def test_a_misread_complaint_teaches_nothing() -> None:
    harness = Harness(in_turn(refusal(400, "temperature of the room"), refusal(400, "odd"), completion()))

    assert isinstance(await fail(harness), NotConfigured)
    await harness.model.complete(PROMPT, deadline=harness.deadline)

    assert "temperature" in harness.bodies[2]


async def test_a_call_waits_for_a_learner_no_longer_than_its_deadline() -> None:
    learner_is_at_it = asyncio.Event()
    harness = Harness(StrictProvider("json_schema"))
    plain_post = harness.model._endpoint.post

    async def post(body: bytes, timeout_s: float) -> Any:
        if b"json_object" in body:
            learner_is_at_it.set()
            await asyncio.Event().wait()
        return await plain_post(body, timeout_s)

    harness.model._endpoint.post = post  # type: ignore[method-assign]
    learner = asyncio.create_task(harness.model.complete(PROMPT, deadline=harness.deadline))
    await learner_is_at_it.wait()

    error = await fail(harness, deadline=harness.clock.seconds + 0.02)

    assert isinstance(error, JudgeTimeout)
    learner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await learner
    assert harness.counts.outcomes == ["rejected", "rejected", "cancelled"]


async def test_no_more_calls_at_once_than_allowed() -> None:
    at_once = most = 0

    async def post(body: bytes, timeout_s: float) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return await plain_post(body, timeout_s)

    harness = Harness(in_turn(completion()), max_in_flight=3)
    plain_post = harness.model._endpoint.post
    harness.model._endpoint.post = post  # type: ignore[method-assign]

    await asyncio.gather(*(harness.model.complete(PROMPT, deadline=harness.deadline) for _ in range(20)))

    assert most == 3
    assert len(harness.requests) == 20


async def test_waiting_for_a_slot_ends_at_the_deadline_and_leaves_the_slots_whole() -> None:
    release = asyncio.Event()
    entered = asyncio.Event()
    harness = Harness(in_turn(completion()), max_in_flight=1)
    plain_post = harness.model._endpoint.post

    async def post(body: bytes, timeout_s: float) -> Any:
        entered.set()
        await release.wait()
        return await plain_post(body, timeout_s)

    harness.model._endpoint.post = post  # type: ignore[method-assign]
    first = asyncio.create_task(harness.model.complete(PROMPT, deadline=harness.deadline))
    await entered.wait()

    assert isinstance(await fail(harness, deadline=harness.clock.seconds + 0.02), JudgeTimeout)
    release.set()
    assert (await first).text == TEXT
    assert (await harness.model.complete(PROMPT, deadline=harness.deadline)).text == TEXT


async def test_a_pause_between_tries_takes_no_slot() -> None:
    harness = Harness(in_turn(refusal(500, "later"), completion()), max_in_flight=1)
    seen: list[str] = []

    async def pause(_: float) -> None:
        seen.append((await harness.model.complete(PROMPT, deadline=harness.deadline)).text)

    harness.model._pause = pause

    await harness.model.complete(PROMPT, deadline=harness.deadline)

    assert seen == [TEXT]


def test_identity_tells_judges_apart_and_holds_no_secret() -> None:
    base = {"id": "a/b", "model": "b", "url": "http://h/v1/chat/completions", "parameters": {"temperature": 0.0}}
    others: list[dict[str, Any]] = [
        {},
        {"id": "c/b"},
        {"model": "c"},
        {"url": "http://i/v1/chat/completions"},
        {"parameters": {"temperature": 0.5}},
        {"parameters": {"temperature": 0.0, "seed": 1}},
    ]

    identities = [Harness(in_turn(completion()), **(base | other)).model.identity for other in others]

    assert len(set(identities)) == len(others)
    assert identities[0] == Harness(in_turn(completion()), **base).model.identity
    assert all(KEY not in identity for identity in identities)
