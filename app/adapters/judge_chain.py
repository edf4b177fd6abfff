"""A judge and those that answer in its place while it can't."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import orjson
import structlog

from app.adapters.chat_http import ChatHttpModel
from app.adapters.patience import Waiting
from app.adapters.retries import ENDLESS, RetryPolicy
from app.domain.errors import AssayError, JudgeError, JudgeTimeout, JudgeUnavailable
from app.ports import Clock, Completion, Prompt, Slot, Telemetry

log = structlog.get_logger()

_AWAY = (JudgeUnavailable, JudgeTimeout)


class JudgeChain:
    """A judge with fallbacks (implements ports.ChatModel), under the id of the judge.

    Fallbacks are asked in order while those before them are not available. What an operator must mend (a wrong key, an
    unknown model) is not hidden by them: only the fallbacks' own mistakes are passed over.
    """

    def __init__(
        self,
        judge: ChatHttpModel,
        fallbacks: Sequence[ChatHttpModel],
        clock: Clock,
        telemetry: Telemetry,
        retries: RetryPolicy,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._judge = judge
        self._fallbacks = tuple(fallbacks)
        self._clock = clock
        self._telemetry = telemetry
        self._rounds = replace(retries, max_retries=ENDLESS)
        self._pause = pause

    @property
    def id(self) -> str:
        """The judge's own `provider/name`."""
        return self._judge.id

    @property
    def context_tokens(self) -> int:
        """The smallest of the chain, since any of it may get the prompt."""
        return min(model.context_tokens for model in (self._judge, *self._fallbacks))

    @property
    def max_output_tokens(self) -> int:
        """The smallest of the chain."""
        return min(model.max_output_tokens for model in (self._judge, *self._fallbacks))

    @property
    def identity(self) -> str:
        """The identities of the whole chain: its answers are cached apart from those of the judge alone."""
        return orjson.dumps([model.identity for model in (self._judge, *self._fallbacks)]).decode()

    async def complete(self, prompt: Prompt, *, deadline: float, slot: Slot | None = None) -> Completion:
        """Ask the judge, or the first fallback that answers; with a slot, again and again until the deadline.

        Raises what the judge raised when nobody answers.
        """
        rounds = 0
        while True:
            try:
                return await self._round(prompt, deadline, slot)
            except _AWAY as error:
                wait_s = self._rounds.wait_s(rounds, 0.0, deadline - self._clock.monotonic())
                if slot is None or error.own_deadline or wait_s is None:
                    raise
            rounds += 1
            with slot.lent():
                await self._pause(wait_s)

    async def _round(self, prompt: Prompt, deadline: float, slot: Slot | None) -> Completion:
        try:
            return await self._judge.ask(prompt, Waiting.ELSEWHERE, deadline, slot)
        except _AWAY as error:
            if error.own_deadline:
                raise
            judges_error = error
        for fallback in self._fallbacks:
            completion = await self._from_fallback(fallback, prompt, deadline, slot, judges_error)
            if completion is not None:
                return completion
        raise judges_error

    async def _from_fallback(
        self, fallback: ChatHttpModel, prompt: Prompt, deadline: float, slot: Slot | None, judges_error: JudgeError
    ) -> Completion | None:
        try:
            completion = await fallback.ask(prompt, Waiting.ELSEWHERE, deadline, slot)
        except AssayError as error:
            log.info("judge_fallback_failed", model=fallback.id, error=error.code, detail=error.detail)
            if isinstance(error, JudgeError) and error.own_deadline:
                judges_error.own_deadline = True
            return None
        self._telemetry.judge_fell_back(self.id, fallback.id)
        return completion
