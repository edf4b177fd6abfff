"""A judge behind any OpenAI-compatible chat endpoint."""

import asyncio
from collections.abc import Awaitable, Callable

import orjson
import structlog

from app.adapters.chat_complaint import read_complaint
from app.adapters.chat_dialect import Dialect, about_format, about_logprobs
from app.adapters.chat_failures import failure, no_completion, refused_by_filter
from app.adapters.chat_outcome import Answer, CallFailed, Outcome
from app.adapters.chat_payload import chat_payload
from app.adapters.chat_reply import read_reply
from app.adapters.judge_gate import JudgeGate, Passage
from app.adapters.judge_http import Endpoint
from app.adapters.judge_spec import JudgeSpec
from app.adapters.lending import lent_when_long
from app.adapters.patience import Patience, Waiting
from app.adapters.rate_headers import LONGEST_EXHAUSTED_S, exhausted_for_s
from app.adapters.retries import RetryPolicy
from app.adapters.retry_after import retry_after_s
from app.domain.errors import ContextOverflow, JudgeTimeout
from app.judge.tokens import token_bound
from app.ports import Clock, Completion, FinishReason, Prompt, Slot, Telemetry

log = structlog.get_logger(__name__)

# Statuses whose complaint may be about how the request was put rather than about what it asks.
_TEACHING = {400, 404, 415, 422, 501}
_TEACHING_ABOUT_LOGPROBS = {403, 500}
# Servers that check requests in their own code answer 500 to a format they don't know.
_TEACHING_ABOUT_FORMAT = {500}


class _DialectRefused(Exception):
    """The provider does not take the request as it was put; `narrower` may be taken."""

    def __init__(self, narrower: Dialect) -> None:
        super().__init__()
        self.narrower = narrower


class ChatHttpModel:
    """One judge model over HTTP (implements ports.ChatModel)."""

    def __init__(
        self,
        spec: JudgeSpec,
        endpoint: Endpoint,
        gate: JudgeGate,
        clock: Clock,
        telemetry: Telemetry,
        retries: RetryPolicy,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._spec = spec
        self._endpoint = endpoint
        self._gate = gate
        self._clock = clock
        self._telemetry = telemetry
        self._retries = retries
        self._pause = pause
        self._dialect = spec.dialect
        self._learning = asyncio.Lock()

    @property
    def id(self) -> str:
        """`provider/name`, as callers name it."""
        return self._spec.id

    @property
    def context_tokens(self) -> int:
        """Prompt and reply together must fit this."""
        return self._spec.context_tokens

    @property
    def max_output_tokens(self) -> int:
        """The most that one reply may take."""
        return self._spec.max_output_tokens

    @property
    def identity(self) -> str:
        """Id, URL, model and parameters as JSON, for cache keys."""
        spec = self._spec
        parts = {"id": spec.id, "url": spec.url, "model": spec.model, "parameters": dict(spec.parameters)}
        return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS).decode()

    async def complete(self, prompt: Prompt, *, deadline: float, slot: Slot | None = None) -> Completion:
        """Ask the model; a part of the API that it refuses is left out from then on.

        Raises JudgeTimeout, JudgeUnavailable, ContextOverflow or NotConfigured; see ports.ChatModel.
        """
        return await self.ask(prompt, Waiting.CALLER if slot is None else Waiting.QUEUED, deadline, slot)

    async def ask(self, prompt: Prompt, waiting: Waiting, deadline: float, slot: Slot | None) -> Completion:
        """Ask the model with the patience of who waits; raises as complete does."""
        patience = Patience(self._retries, waiting, deadline, slot, self._clock, self._telemetry, self._pause)
        while True:
            sent = self._dialect
            try:
                return await self._ask(prompt, sent, patience)
            except _DialectRefused as refusal:
                completion = await self._learn(prompt, sent, refusal.narrower, patience)
            if completion is not None:
                return completion

    async def _learn(self, prompt: Prompt, sent: Dialect, narrower: Dialect, patience: Patience) -> Completion | None:
        """Find the dialect that is taken and keep it; None when another call found one meanwhile.

        One call at a time, so that calls which start together do not each pay for every step. A dialect is kept only
        once it has brought a reply: a misread complaint teaches nothing.
        """
        await self._take_turn(patience)
        try:
            if self._dialect != sent:
                return None
            while True:
                self._telemetry.judge_retried(self.id, Outcome.REJECTED)
                try:
                    completion = await self._ask(prompt, narrower, patience)
                except _DialectRefused as refusal:
                    narrower = refusal.narrower
                    continue
                self._dialect = narrower
                log.info("judge_dialect_learned", model=self.id, dialect=str(narrower))
                return completion
        finally:
            self._learning.release()

    async def _take_turn(self, patience: Patience) -> None:
        """Wait to be the one that learns, within the deadline."""
        try:
            with lent_when_long(patience.slot):
                async with asyncio.timeout(patience.left_s):
                    await self._learning.acquire()
        except TimeoutError:
            raise JudgeTimeout("The run's time was over before the judge model was free", own_deadline=True) from None

    async def _ask(self, prompt: Prompt, dialect: Dialect, patience: Patience) -> Completion:
        """Make one call in this dialect, with retries."""
        spec = self._spec
        max_tokens = min(prompt.max_tokens + spec.reasoning_tokens, spec.max_output_tokens)
        body = chat_payload(spec.model, prompt, dialect, spec.parameters, max_tokens)

        def most_tokens() -> int:
            return token_bound(body.decode()) + max_tokens if spec.limits.tokens_per_minute else 0

        while True:
            try:
                async with self._gate.passed(most_tokens, patience.deadline, patience.slot) as passage:
                    return await self._call(body, dialect, patience.deadline, passage)
            except CallFailed as failed:
                await patience.bear(failed, self.id, self._gate.held_s())

    async def _call(self, body: bytes, dialect: Dialect, deadline: float, passage: Passage) -> Completion:
        """Make one HTTP call, counted once whatever becomes of it."""
        started = self._clock.monotonic()
        passage.granted_s = timeout_s = min(self._spec.timeout_s, deadline - started)
        if timeout_s <= 0:
            raise JudgeTimeout("The run's time was over before the judge model could be asked", own_deadline=True)
        outcome = Outcome.CANCELLED
        try:
            answer = await self._endpoint.post(body, timeout_s)
            outcome = Outcome.REJECTED
            self._gate.exhausted(self._exhausted_s(answer))
            passage.completion = completion = self._read(answer, dialect)
            outcome = Outcome.REFUSED if completion.finish is FinishReason.REFUSAL else Outcome.OK
        except CallFailed as failed:
            outcome = failed.outcome
            raise
        finally:
            self._count(outcome, started, passage.completion)
        return completion

    def _exhausted_s(self, answer: Answer) -> float:
        return min(exhausted_for_s(answer.headers, self._clock.now()), LONGEST_EXHAUSTED_S)

    def _count(self, outcome: Outcome, started: float, completion: Completion | None) -> None:
        seconds = self._clock.monotonic() - started
        tokens = (completion.input_tokens, completion.output_tokens) if completion else (0, 0)
        cost_usd = completion.cost_usd if completion else None
        self._telemetry.judge_called(self.id, outcome, seconds, *tokens, cost_usd)

    def _read(self, answer: Answer, dialect: Dialect) -> Completion:
        """Return what an answer says; raises CallFailed or _DialectRefused."""
        if answer.status != 200:
            return self._read_refusal(answer, dialect)
        reply = read_reply(answer.body)
        if reply is None:
            raise no_completion(answer)
        cost_usd = self._spec.cost_usd(reply.input_tokens, reply.output_tokens)
        return Completion(
            reply.text, reply.finish, self.id, reply.input_tokens, reply.output_tokens, cost_usd, reply.tokens
        )

    def _read_refusal(self, answer: Answer, dialect: Dialect) -> Completion:
        complaint = read_complaint(answer.body)
        if refused_by_filter(answer, complaint):
            return Completion("", FinishReason.REFUSAL, self.id)
        wait_s = retry_after_s(answer.headers, self._clock.now()) or self._exhausted_s(answer)
        failed = failure(answer, complaint, key_name=self._spec.key_name, retry_after_s=wait_s)
        teaches = answer.status in _TEACHING and not failed.retry and failed.becomes is not ContextOverflow
        if answer.status in _TEACHING_ABOUT_LOGPROBS and dialect.most_logprobs and about_logprobs(complaint):
            teaches = True
        if answer.status in _TEACHING_ABOUT_FORMAT and about_format(complaint):
            teaches = True
        narrower = dialect.without(complaint) if teaches else None
        if narrower is not None:
            raise _DialectRefused(narrower)
        raise failed
