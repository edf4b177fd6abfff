"""What several voices make of a run: how far they agree, and how sure that leaves the score."""

from collections.abc import Sequence
from typing import Any

from app.domain.run import Basis, Direction, PanelMember, ScoreInterval
from app.domain.scoring import passed, scaled
from app.judge.interval import LEVEL, score_interval
from app.judge.judgement import Judgement
from app.judge.scorer import Scorer
from app.judge.step import Asker
from app.judge.voting import Voter, agreement, dissents, elected
from app.ports import ChatModel


def voter(voice: Asker) -> Voter:
    """Return who a voice is among the votes."""
    return Voter(voice.model.id, max(voice.sample, 1))


def agreed(judgement: Judgement, models: Sequence[ChatModel], scorer: Scorer, options: Any) -> dict[str, Any]:
    """Return the fields of a run that tell how its voices agree, where it has several."""
    if not judgement.polls:
        return {}
    members = [_member(model.id, judgement, scorer, options) for model in models] if len(models) > 1 else None
    return {"agreement": agreement(judgement.polls), "panel": members}


def _member(model: str, judgement: Judgement, scorer: Scorer, options: Any) -> PanelMember:
    """Return what a model's ballots alone come to."""
    polls = judgement.polls
    value = scorer.value([*judgement.settled, *elected([poll.among(model) for poll in polls])], options)
    score = None if value is None else scaled(value, options.scale)
    return PanelMember(model=model, score=score, dissents=dissents(polls, model))


def interval_of(judgement: Judgement, basis: Basis, value: float, scorer: Scorer, options: Any) -> ScoreInterval:
    """Return the interval of a 0..1 value that was computed of a judgement."""
    low, high = score_interval(judgement.prospects, lambda verdicts: scorer.value(verdicts, options), value)
    return ScoreInterval(low=scaled(low, options.scale), high=scaled(high, options.scale), level=LEVEL, basis=basis)


def with_doubt(
    told: dict[str, Any], interval: ScoreInterval, threshold: float | None, direction: Direction
) -> dict[str, Any]:
    """Return what a run tells of its score with its interval: not whether it passed, where that may be either."""
    told = told | {"score_interval": interval}
    if threshold is None:
        return told
    ends = {passed(end, threshold, direction) for end in (interval.low, interval.high)}
    return told | ({"passed": None, "uncertain": True} if len(ends) > 1 else {})
