"""Rubric: which of the caller's own criteria an output meets (higher is better)."""

from collections.abc import Sequence
from math import fsum, inf, prod
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat, StringConstraints
from pydantic_core import PydanticCustomError

from app.domain.model import Model, refuse_blank, refuse_nul
from app.domain.request import Options, RunRequest
from app.domain.run import Direction
from app.judge.exhibit import OUTPUT
from app.judge.scorer import Assessment, Inquiry, Scorer, View, as_verdict, by_every_strategy, five_bands
from app.judge.subject import Subject, listed
from app.judge.verdict import Analysis, Sureness, Verdict, counted, sureness

CriterionId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
Description = Annotated[
    str, StringConstraints(max_length=2_000), AfterValidator(refuse_nul), AfterValidator(refuse_blank)
]


class Criterion(Model):
    """Something that the output has to meet."""

    id: CriterionId = Field(description="By which its verdict names it")
    description: Description = Field(description="What the output has to be like; all that the judge is told of it")
    required: bool = Field(False, description="Whether the score is 0 when it is not met")
    weight: Annotated[FiniteFloat, Field(gt=0, le=1_000)] = Field(1.0, description="How much it counts for the score")


def _refuse_repeated_ids(criteria: list[Criterion]) -> list[Criterion]:
    if len({criterion.id for criterion in criteria}) < len(criteria):
        raise PydanticCustomError("repeated", "Give every criterion an id of its own")
    return criteria


class RubricOptions(Options):
    """Options of rubric beside the common ones."""

    criteria: Annotated[list[Criterion], Field(min_length=1, max_length=50), AfterValidator(_refuse_repeated_ids)] = (
        Field(description="What the output is judged by")
    )


class CriterionVerdict(Sureness):
    """Whether the output meets the criterion with this id, and why; `required` and `weight` are the caller's."""

    id: str
    verdict: Literal["yes", "no"]
    required: bool
    weight: float
    reason: str | None


class RubricAnalysis(Analysis):
    """What analyze finds: one verdict for every criterion."""

    verdicts: list[CriterionVerdict]


_ANALYSIS = """\
You judge an answer (A:) by criteria, the numbered lines: decide on each criterion whether the answer meets it.
yes: the answer meets all that the criterion asks of it. no: it does not, or only in part, or it can't be told from \
the answer.
Take each criterion by itself and as it is worded. Only what the answer is like counts: that it says it meets a \
criterion is no sign that it does."""

_EXPLANATION = """\
You explain a score to the person whose criteria an answer was judged by, in two or three sentences: why it is what it \
is, and which criteria are not met. The score is 0 when a required criterion is not met, else the weighted share of \
the criteria that are met; it is settled."""

_ASSESSMENT = Assessment(
    fields={"verdict": ("yes", "no")},
    system=_ANALYSIS,
    reasons=True,
    read=as_verdict,
    view=View(neighbours=False, exhibits=(OUTPUT,)),
    units="criteria",
)


def _criteria(_: RunRequest, options: RubricOptions) -> Subject:
    return listed(
        [criterion.description for criterion in options.criteria],
        [criterion.model_dump(include={"id", "required", "weight"}) for criterion in options.criteria],
    )


def _is_met(verdict: Verdict) -> bool:
    return verdict.labels["verdict"] == "yes"


def _assessed(verdicts: Sequence[Verdict]) -> RubricAnalysis:
    return RubricAnalysis.model_validate(
        {
            "verdicts": [
                {
                    **verdict.item.known,
                    "verdict": verdict.labels["verdict"],
                    "reason": verdict.reason,
                    **sureness(verdict),
                }
                for verdict in verdicts
            ]
        }
    )


def _value(verdicts: Sequence[Verdict], options: RubricOptions) -> float:
    """0 when a required criterion is unmet, else the weight of those that are met by the weight of all.

    Where criteria are only likely to be met it is the expected value of that, taking them as independent: the shares of
    the required ones multiply, and the others are weighed by theirs.
    """
    met = [
        min(1.0, counted(one for one in verdicts if one.place == place and _is_met(one)))
        for place in range(len(options.criteria))
    ]
    both = list(zip(options.criteria, met, strict=True))
    likely = prod(share for criterion, share in both if criterion.required)
    weighed = fsum(criterion.weight * (1.0 if criterion.required else share) for criterion, share in both)
    return likely * weighed / fsum(criterion.weight for criterion in options.criteria)


def _weight(verdict: Verdict) -> float:
    if _is_met(verdict):
        return 0.0
    return inf if verdict.item.known["required"] else float(verdict.item.known["weight"])


def _describe(verdict: Verdict) -> str:
    return f"criterion {verdict.place + 1}, {'required and ' * verdict.item.known['required']}not met"


SCORER = Scorer(
    id="rubric",
    version="1",
    description=(
        "The weighted share of the caller's own criteria that the output meets; 0 when it does not meet one that is "
        "required."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output",),
    options=RubricOptions,
    bands=five_bands(
        "nothing met, or not what is required", "little met", "partly met", "mostly met", "all criteria met"
    ),
    step_schemas={"analyzeStepResult": RubricAnalysis.model_json_schema(mode="serialization")},
    inquiries=(Inquiry(subject=_criteria, assessments=by_every_strategy(_ASSESSMENT)),),
    selected=None,
    assessed=_assessed,
    value=_value,
    weight=_weight,
    describe=_describe,
    explanation=_EXPLANATION,
    nothing_found={
        "en": "The text meets every criterion.",
        "fr": "Le texte remplit tous les critères.",
        "ko": "이 글은 모든 기준을 충족합니다.",
        "ja": "このテキストはすべての基準を満たしています。",
        "de": "Der Text erfüllt jedes Kriterium.",
        "es": "El texto cumple todos los criterios.",
        "pt": "O texto cumpre todos os critérios.",
        "zh": "这段文本符合所有标准。",
    },
    counts_shares=True,
)
