"""A judge behind any OpenAI-compatible chat endpoint."""

import asyncio
from collections.abc import Awaitable, Callable

import orjson
import structlog

from app.adapters.chat_complaint import read_complaint
from app.adapters.chat_dialect import Dialect
from app.adapters.chat_failures import failure, no_completion, refused_by_filter
from app.adapters.chat_outcome import Answer, CallFailed, Outcome
from app.adapters.chat_payload import chat_payload
from app.adapters.chat_reply import read_reply
from app.adapters.judge_http import Endpoint
from app.adapters.judge_spec import JudgeSpec
from app.adapters.retries import RetryPolicy
from app.adapters.retry_after import retry_after_s
from app.domain.errors import ContextOverflow, JudgeError, JudgeTimeout
from app.ports import Clock, Completion, FinishReason, Prompt, Slot, Telemetry

log = structlog.get_logger(__name__)

# Statuses whose complaint may be about how the request was put rather than about what it asks.
_TEACHING = {400, 404, 415, 422, 501}


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
        clock: Clock,
        telemetry: Telemetry,
        retries: RetryPolicy,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._spec = spec
        self._endpoint = endpoint
        self._clock = clock
        self._telemetry = telemetry
        self._retries = retries
        self._pause = pause
        self._slots = asyncio.Semaphore(spec.max_in_flight)
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
        while True:
            sent = self._dialect
            try:
                return await self._ask(prompt, sent, deadline)
            except _DialectRefused as refusal:
                completion = await self._learn(prompt, sent, refusal.narrower, deadline)
            if completion is not None:
                return completion

    async def _learn(self, prompt: Prompt, sent: Dialect, narrower: Dialect, deadline: float) -> Completion | None:
        """Find the dialect that is taken and keep it; None when another call found one meanwhile.

        One call at a time, so that calls which start together do not each pay for every step. A dialect is kept only
        once it has brought a reply: a misread complaint teaches nothing.
        """
        await self._until(deadline, self._learning.acquire())
        try:
            if self._dialect != sent:
                return None
            while True:
                self._telemetry.judge_retried(self.id, Outcome.REJECTED)
                try:
                    completion = await self._ask(prompt, narrower, deadline)
                except _DialectRefused as refusal:
                    narrower = refusal.narrower
                    continue
                self._dialect = narrower
                log.info("judge_dialect_learned", model=self.id, dialect=str(narrower))
                return completion
        finally:
            self._learning.release()

    async def _ask(self, prompt: Prompt, dialect: Dialect, deadline: float) -> Completion:
        """Make one call in this dialect, with retries."""
        spec = self._spec
        max_tokens = min(prompt.max_tokens + spec.reasoning_tokens, spec.max_output_tokens)
        body = chat_payload(spec.model, prompt, dialect, spec.parameters, max_tokens)
        retries = 0
        while True:
            try:
                return await self._attempt(body, dialect, deadline)
            except CallFailed as failed:
                await self._wait(failed, retries, deadline)
                retries += 1

    async def _wait(self, failed: CallFailed, retries: int, deadline: float) -> None:
        """Wait before the next attempt; raises what the failure becomes when there is none."""
        if not failed.retry:
            raise failed.final() from None
        left_s = deadline - self._clock.monotonic()
        wait_s = self._retries.wait_s(retries, failed.retry_after_s, left_s)
        if wait_s is None:
            error = failed.final(_why_no_more(failed, retries, self._retries.max_retries))
            if isinstance(error, JudgeError):
                error.own_deadline = retries < self._retries.max_retries or left_s <= 0
            raise error from None
        self._telemetry.judge_retried(self.id, failed.outcome)
        await self._pause(wait_s)

    async def _attempt(self, body: bytes, dialect: Dialect, deadline: float) -> Completion:
        await self._until(deadline, self._slots.acquire())
        try:
            return await self._call(body, dialect, deadline)
        finally:
            self._slots.release()

    async def _call(self, body: bytes, dialect: Dialect, deadline: float) -> Completion:
        """Make one HTTP call, counted once whatever becomes of it."""
        started = self._clock.monotonic()
        timeout_s = min(self._spec.timeout_s, deadline - started)
        if timeout_s <= 0:
            raise JudgeTimeout("The run's time was over before the judge model could be asked", own_deadline=True)
        outcome, completion = Outcome.CANCELLED, None
        try:
            answer = await self._endpoint.post(body, timeout_s)
            outcome = Outcome.REJECTED
            completion = self._read(answer, dialect)
            outcome = Outcome.REFUSED if completion.finish is FinishReason.REFUSAL else Outcome.OK
        except CallFailed as failed:
            outcome = failed.outcome
            raise
        finally:
            self._count(outcome, started, completion)
        return completion

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
        return Completion(reply.text, reply.finish, self.id, reply.input_tokens, reply.output_tokens, cost_usd)

    def _read_refusal(self, answer: Answer, dialect: Dialect) -> Completion:
        complaint = read_complaint(answer.body)
        if refused_by_filter(answer, complaint):
            return Completion("", FinishReason.REFUSAL, self.id)
        wait_s = retry_after_s(answer.headers, self._clock.now())
        failed = failure(answer, complaint, key_name=self._spec.key_name, retry_after_s=wait_s)
        narrower = dialect.without(complaint) if answer.status in _TEACHING else None
        if narrower is not None and not failed.retry and failed.becomes is not ContextOverflow:
            raise _DialectRefused(narrower)
        raise failed

    async def _until(self, deadline: float, waiting: Awaitable[object]) -> None:
        """Wait for a slot or a lock, within the deadline."""
        try:
            async with asyncio.timeout(deadline - self._clock.monotonic()):
                await waiting
        except TimeoutError:
            raise JudgeTimeout("The run's time was over before the judge model was free", own_deadline=True) from None


def _why_no_more(failed: CallFailed, retries: int, max_retries: int) -> str:
    if retries < max_retries and failed.retry_after_s > 0:
        return f"; it asks to wait {failed.retry_after_s:.0f} s, longer than this run's deadline leaves"
    if retries < max_retries:
        return "; this run's deadline leaves no time for another try"
    return f"; {retries} retries did not help" if retries else ""
