"""Judge one run: the only way from a request to a score."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.domain.request import RunRequest
from app.domain.run import Run, Step
from app.judge.scorer import Scorer
from app.ports import AnswerCache, ChatModel, Clock, Telemetry

OnStep = Callable[[Run, Step], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Judge:
    """Who judges, for whom, and with what at hand."""

    model: ChatModel
    cache: AnswerCache
    tenant: str
    fence_key: bytes
    clock: Clock
    telemetry: Telemetry


async def judge_run(
    run: Run,
    request: RunRequest,
    scorer: Scorer,
    judge: Judge,
    *,
    deadline: float,
    on_step: OnStep,
    cache_keys: list[str],
) -> Run:
    """Return the run with every judged field filled in, its status completed, failed or not_scorable."""
    raise NotImplementedError
