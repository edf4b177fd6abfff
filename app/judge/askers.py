"""Who is asked in one run: for the scorer, for what belongs to no scorer, and for the verdicts."""

from dataclasses import dataclass, replace

from app.domain.request import Options, RunRequest, StorePolicy
from app.judge.answers import Answers
from app.judge.scorer import Extraction, Scorer
from app.judge.step import Asker
from app.judge.tally import Tally
from app.ports import AnswerCache, ChatModel, Clock, Slot, Telemetry


@dataclass(frozen=True, slots=True)
class Judge:
    """Who judges, for whom, and with what at hand; `panel` are those that give verdicts beside `model`."""

    model: ChatModel
    cache: AnswerCache
    tenant: str
    fence_key: bytes
    clock: Clock
    telemetry: Telemetry
    slot: Slot | None = None
    panel: tuple[ChatModel, ...] = ()

    @property
    def models(self) -> tuple[ChatModel, ...]:
        """All models that give verdicts."""
        return (self.model, *self.panel)


class Askers:
    """The askers of one run; `own` is the scorer's.

    `voices` are those of all models in all samples, the first model's first. Without samples each model gives its one
    answer, which is that of runs with this model alone.
    """

    def __init__(
        self,
        judge: Judge,
        scorer: Scorer,
        options: Options,
        request: RunRequest,
        run_id: str,
        tally: Tally,
        deadline: float,
        cache_keys: list[str],
    ) -> None:
        self._tenant = judge.tenant
        self._owner = request.group or run_id
        # What does not matter to one answer: how many others there are.
        asked = (scorer.id, scorer.version, options.model_dump_json(exclude={"samples"}))
        answers = Answers(
            cache=judge.cache,
            clock=judge.clock,
            deadline=deadline,
            about=self._about(judge.model, *asked),
            run_id=run_id,
            mode=request.cache,
            kept=request.store is not StorePolicy.NONE,
            used_keys=cache_keys,
        )
        self.own = Asker(scorer.id, judge.model, answers, judge.telemetry, tally, judge.slot)
        self.voices = [
            replace(
                self.own,
                model=model,
                sample=sample,
                answers=replace(answers, about=self._about(model, *asked, sample=sample)),
            )
            for model in judge.models
            for sample in (range(1, options.samples + 1) if options.samples > 1 else (0,))
        ]

    def shared(self, extraction: Extraction) -> Asker:
        """Return the asker of what belongs to no scorer: all runs of a request share its answers."""
        about = self._about(self.own.model, extraction.name, extraction.version)
        return replace(self.own, answers=replace(self.own.answers, about=about, run_id=self._owner))

    def _about(self, model: ChatModel, name: str, version: str, options: str = "", sample: int = 0) -> tuple[str, ...]:
        """Return what the keys of answers depend on beside the prompt."""
        return (self._tenant, model.identity, name, version, options, str(sample))
