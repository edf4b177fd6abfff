"""Context recall: which share of the reference answer's claims the context holds (higher is better)."""

from collections.abc import Sequence
from typing import Literal

from app.domain.request import Options
from app.domain.run import Direction, Span
from app.judge.claims import (
    BY_PASSAGES,
    NO_CLAIM_IN_REFERENCE,
    NO_FACT,
    Claims,
    checked_against,
    found_claims,
)
from app.judge.exhibit import CONTEXT
from app.judge.scorer import Scorer, five_bands
from app.judge.subject import ground_truth_segments
from app.judge.verdict import Analysis, Sureness, Verdict, counted, quoting


class RecallVerdict(Sureness):
    """Whether the context supports a claim of the reference answer, and why.

    `span` points into the ground truth. `passages` are the numbers, from 1, of the passages that support the claim.
    """

    verdict: Literal["yes", "no"]
    reason: str | None
    claim: str
    span: Span
    passages: list[int]


class ContextRecallAnalysis(Analysis):
    """What analyze finds: one verdict for every claim."""

    verdicts: list[RecallVerdict]


_ANALYSIS = f"""\
You judge whether the passages that were fetched for an answer suffice for it: decide on each claim of the answer.
yes: passages say so, or it follows from them. no: they do not tell, or say otherwise, however true the claim may be.
{BY_PASSAGES}"""

_LABELLING = f"""\
You judge whether the passages that were fetched for an answer suffice for it: decide on each segment of the answer.
yes: passages say all that it states, or it follows from them. no: they do not tell all of it, or say otherwise, \
however true it may be. none: it {NO_FACT}.
{BY_PASSAGES}"""

_EXPLANATION = """\
You explain a recall score to the person who asked for it, in two or three sentences: why it is what it is, and what \
the passages of the context do not hold. The score is the share of the reference answer's claims that the context \
supports; it is settled."""


def _is_supported(verdict: Verdict) -> bool:
    return verdict.labels["verdict"] == "yes"


def _assessed(verdicts: Sequence[Verdict]) -> ContextRecallAnalysis:
    return ContextRecallAnalysis.model_validate(
        {
            "verdicts": [
                {
                    "verdict": verdict.labels["verdict"],
                    **quoting(verdict, "claim"),
                    "passages": list(verdict.cited) if _is_supported(verdict) else [],
                }
                for verdict in verdicts
            ]
        }
    )


def _value(verdicts: Sequence[Verdict], _: Options) -> float | None:
    """Supported claims by claims; a reference answer without claims gives no score."""
    return counted(filter(_is_supported, verdicts)) / counted(verdicts) if verdicts else None


SCORER = Scorer(
    id="context-recall",
    version="1",
    description=(
        "The share of the reference answer's claims that the context supports: whether all that a right answer needs "
        "was fetched. The output itself is not read."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output", "context", "groundTruth"),
    options=Options,
    bands=five_bands(
        "nothing needed was fetched",
        "little of what is needed",
        "a part of what is needed",
        "most of what is needed",
        "all that is needed was fetched",
    ),
    step_schemas={
        "preprocessStepResult": Claims.model_json_schema(mode="serialization"),
        "analyzeStepResult": ContextRecallAnalysis.model_json_schema(mode="serialization"),
    },
    inquiries=(
        checked_against(CONTEXT, ("yes", "no"), claims=_ANALYSIS, segments=_LABELLING, subject=ground_truth_segments),
    ),
    selected=found_claims,
    assessed=_assessed,
    value=_value,
    weight=lambda verdict: float(not _is_supported(verdict)),
    describe=lambda _: "not in the context",
    explanation=_EXPLANATION,
    nothing_found={
        "en": "The context supports every claim of the reference answer.",
        "fr": "Le contexte confirme toutes les affirmations de la réponse de référence.",
        "ko": "기준 답변의 모든 주장은 제공된 문맥으로 뒷받침됩니다.",
        "ja": "参照回答の主張はすべてコンテキストによって裏付けられています。",
        "de": "Der Kontext stützt jede Aussage der Referenzantwort.",
        "es": "El contexto respalda todas las afirmaciones de la respuesta de referencia.",
        "pt": "O contexto sustenta todas as afirmações da resposta de referência.",
        "zh": "参考答案中的所有陈述都有上下文支持。",
    },
    nothing_to_score=NO_CLAIM_IN_REFERENCE,
    scored=lambda request: request.ground_truth or "",
    counts_shares=True,
)
