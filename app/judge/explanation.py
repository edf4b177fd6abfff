"""The reason of a score: asked of the judge, composed from its verdicts, or a fixed sentence."""

from collections.abc import Sequence
from typing import NamedTuple

from app.domain.errors import ContextOverflow
from app.domain.request import Options
from app.domain.run import Direction
from app.judge.evidence import Evidence
from app.judge.exchange import prompt_for
from app.judge.exhibit import OUTPUT
from app.judge.fence import one_line
from app.judge.language import told
from app.judge.scorer import Scorer
from app.judge.task import Task
from app.judge.verdict import Verdict
from app.ports import ChatModel

MOST_FINDINGS = 12


class Outcome(NamedTuple):
    """What is to be explained: the score on the caller's scale, its band, and over how many units it was taken.

    `units` names them, in the plural.
    """

    score: float
    interpretation: str
    judged: int
    units: str = "segments"


def findings_of(scorer: Scorer, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts that a reason has to mention, the weightiest first."""
    weights = [scorer.weight(verdict) for verdict in verdicts]
    ranked = sorted(range(len(verdicts)), key=lambda index: -weights[index])
    return [verdicts[index] for index in ranked if weights[index] > 0]


def composed_reason(scorer: Scorer, findings: Sequence[Verdict]) -> str:
    """Return a reason made of the verdicts' own reasons, without another judge call."""
    told_of = findings[:MOST_FINDINGS]
    parts = [f"{scorer.describe(found)}: {found.reason or '-'}" for found in told_of]
    left_out = len(findings) - len(told_of)
    return "\n".join(parts + [f"(+{left_out})"] * bool(left_out))


def explanation_user(
    scorer: Scorer,
    findings: Sequence[Verdict],
    outcome: Outcome,
    options: Options,
    evidence: Evidence,
    task: Task[str],
    model: ChatModel,
) -> str:
    """Return the user message that asks for the reason of a scored run, with as many findings as fit the model.

    Raises ContextOverflow when not even one does.
    """
    views = [inquiry.assessments[options.strategy].view for inquiry in scorer.inquiries]
    lines_to_follow = "the lines with -" if any(OUTPUT in view.exhibits for view in views) else "the numbered lines"
    good = "lower" if scorer.direction is Direction.LOWER_IS_BETTER else "higher"
    shown = min(len(findings), MOST_FINDINGS)
    while True:
        lines = [line for number, found in enumerate(findings[:shown], 1) for line in _lines(scorer, number, found)]
        user = (
            f"Write in {told(options.language, lines_to_follow)}.\n"
            f"Score: {outcome.score:g} from 0 to {options.scale:g}, {good} is better: {outcome.interpretation}.\n"
            f"Findings: {len(findings)} among {outcome.judged} judged {outcome.units}; shown here: {shown}.\n"
            f"{evidence.fence.around([*evidence.question, *lines])}"
        )
        try:
            prompt_for(task, model, user, (1,))
        except ContextOverflow:
            if shown == 1:
                raise
            shown //= 2
        else:
            return user


def _lines(scorer: Scorer, number: int, found: Verdict) -> list[str]:
    lines = [f"[{number}] {scorer.describe(found)}: {one_line(found.item.text)}"]
    return [*lines, f"- {one_line(found.reason)}"] if found.reason else lines
