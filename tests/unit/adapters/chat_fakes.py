"""A judge model over a scripted transport, with time and counts in the test's hands."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx

from app.adapters.chat_http import ChatHttpModel
from app.adapters.judge_gate import JudgeGate
from app.adapters.judge_http import JudgeHttp
from app.adapters.judge_pauses import JudgePauses
from app.adapters.judge_spec import JudgeSpec
from app.adapters.retries import RetryPolicy
from app.ports import Prompt

KEY = "sk-test-0123456789"
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdicts"],
    "properties": {"verdicts": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"enum": ["yes", "no"]}}},
}
PROMPT = Prompt(system="You judge.", user="[1] Some text.", schema=SCHEMA, name="bias_analyze", max_tokens=300)
TEXT = '{"verdicts": ["yes", "no"]}'

Handler = Callable[[httpx.Request], httpx.Response]


class HeldClock:
    """Time that stands still unless a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


class Counts:
    """Remembers what the adapter reports."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.retries: list[tuple[str, str]] = []
        self.waits: list[tuple[str, str, float]] = []
        self.states: list[str] = []
        self.fell_back: list[tuple[str, str]] = []

    @property
    def outcomes(self) -> list[str]:
        return [str(call[1]) for call in self.calls]

    def judge_called(self, *call: Any) -> None:
        self.calls.append(call)

    def judge_retried(self, model: str, cause: str) -> None:
        self.retries.append((model, str(cause)))

    def judge_waited(self, model: str, cause: str, seconds: float) -> None:
        self.waits.append((model, cause, seconds))

    def breaker_changed(self, model: str, state: str) -> None:
        self.states.append(str(state))

    def judge_fell_back(self, model: str, to: str) -> None:
        self.fell_back.append((model, to))


class LentSlot:
    """Counts how often a run's slot was lent, and whether it is now."""

    def __init__(self) -> None:
        self.times = 0
        self.lent_now = 0

    @contextmanager
    def lent(self) -> Iterator[None]:
        self.times += 1
        self.lent_now += 1
        try:
            yield
        finally:
            self.lent_now -= 1


class Harness:
    """One judge whose provider is `handler`; `bodies` are the requests it got, `waits` the pauses between them."""

    def __init__(self, handler: Handler, *, max_retries: int = 2, clock: HeldClock | None = None, **spec: Any) -> None:
        self.handler = handler
        self.clock = clock or HeldClock()
        self.counts = Counts()
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        fixed = {
            "id": "acme/judge",
            "model": "judge",
            "url": "http://judge.test/v1/chat/completions",
            "key_name": "ACME_API_KEY",
            "context_tokens": 8_192,
            "max_output_tokens": 4_096,
            "timeout_s": 60.0,
            "max_in_flight": 256,
            "parameters": {"temperature": 0.0},
        }
        self.spec = JudgeSpec(**(fixed | spec))
        self.http = JudgeHttp(5.0, transport=lambda _: httpx.MockTransport(self._answer))
        endpoint = self.http.endpoint(self.spec.url, {"authorization": f"Bearer {KEY}"})
        self.pauses = JudgePauses(self.clock)
        self.gate = JudgeGate(self.spec, self.clock, self.counts, self.pauses)  # type: ignore[arg-type]
        self.model = ChatHttpModel(
            self.spec,
            endpoint,
            self.gate,
            self.clock,
            self.counts,  # type: ignore[arg-type]
            RetryPolicy(max_retries),
            pause=self._pause,
        )

    @property
    def deadline(self) -> float:
        """A minute from now."""
        return self.clock.seconds + 60.0

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.handler(request)

    async def _pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.seconds += seconds


def completion(content: Any = TEXT, finish: str | None = "stop", **message: Any) -> httpx.Response:
    """Return a well-formed answer."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return httpx.Response(200, json={"choices": [choice], "usage": {"prompt_tokens": 40, "completion_tokens": 8}})


def refusal(status: int, message: str, **error: Any) -> httpx.Response:
    """Return an error as OpenAI words it."""
    return httpx.Response(status, json={"error": {"message": message, **error}})


def in_turn(*answers: httpx.Response | Exception) -> Handler:
    """Return a handler that gives these answers, the last one for ever."""
    left = list(answers)

    def handler(_: httpx.Request) -> httpx.Response:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return handler
