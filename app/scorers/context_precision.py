"""Context precision: whether the useful passages of a ranked context come first (higher is better)."""

from collections.abc import Sequence
from math import fsum
from typing import Literal

from app.domain.request import Options
from app.domain.run import Direction
from app.judge.exhibit import OUTPUT
from app.judge.scorer import Assessment, Inquiry, Scorer, View, as_verdict, by_every_strategy, five_bands
from app.judge.subject import context_passages
from app.judge.verdict import Analysis, Sureness, Verdict, counted, sureness


class PassageVerdict(Sureness):
    """Whether the passage with this number (from 1, in the order of `context`) is useful, and why."""

    number: int
    verdict: Literal["yes", "no"]
    reason: str | None


class ContextPrecisionAnalysis(Analysis):
    """What analyze finds: one verdict for every passage that is not blank."""

    verdicts: list[PassageVerdict]


_ANALYSIS = """\
You judge passages that were fetched to answer a question (the lines with ?): decide on each passage, beside the \
answer that was given.
yes: it holds something that the answer says or needs, or that answers the question. no: it does not, even if it is \
about the same subject."""

_EXPLANATION = """\
You explain a precision score to the person who asked for it, in two or three sentences: why it is what it is, and \
which passages were of no use. The score is high when useful passages come before the others; it is settled."""

_VIEW = View(neighbours=False, exhibits=(OUTPUT,), piecewise=True)


def _is_useful(verdict: Verdict) -> bool:
    return verdict.labels["verdict"] == "yes"


def _assessed(verdicts: Sequence[Verdict]) -> ContextPrecisionAnalysis:
    return ContextPrecisionAnalysis.model_validate(
        {
            "verdicts": [
                {
                    "number": verdict.place + 1,
                    "verdict": verdict.labels["verdict"],
                    "reason": verdict.reason,
                    **sureness(verdict),
                }
                for verdict in verdicts
            ]
        }
    )


def _value(verdicts: Sequence[Verdict], _: Options) -> float:
    """Average precision: the mean, over the useful passages, of the share of useful ones up to their rank.

    Where passages are only more or less likely to be useful, sum and number are what is to be expected of both: for a
    useful passage, itself and those that are expected to be useful before it, by its rank.
    """
    useful = sorted(filter(_is_useful, verdicts), key=lambda verdict: verdict.place)
    precisions = [
        verdict.share * (1 + counted(useful[:before])) / (verdict.place + 1) for before, verdict in enumerate(useful)
    ]
    return fsum(precisions) / counted(useful) if useful else 0.0


_ASSESSMENT = Assessment(
    fields={"verdict": ("yes", "no")}, system=_ANALYSIS, reasons=True, read=as_verdict, view=_VIEW, units="passages"
)

SCORER = Scorer(
    id="context-precision",
    version="1",
    description=(
        "Whether the passages that were of use for the answer rank before those that were not: average precision over "
        "the context in its order."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("input", "output", "context"),
    options=Options,
    bands=five_bands(
        "no useful passage",
        "useful passages come late",
        "useful passages among others",
        "useful passages mostly first",
        "useful passages first",
    ),
    step_schemas={"analyzeStepResult": ContextPrecisionAnalysis.model_json_schema(mode="serialization")},
    inquiries=(Inquiry(subject=context_passages, assessments=by_every_strategy(_ASSESSMENT)),),
    selected=None,
    assessed=_assessed,
    value=_value,
    weight=lambda verdict: float(not _is_useful(verdict)),
    describe=lambda verdict: f"passage {verdict.place + 1}, of no use",
    explanation=_EXPLANATION,
    nothing_found={
        "en": "Every passage of the context was useful.",
        "fr": "Tous les passages du contexte ont été utiles.",
        "ko": "제공된 문맥의 모든 구절이 유용했습니다.",
        "ja": "コンテキストのすべての文章が役に立ちました。",
        "de": "Jeder Abschnitt des Kontexts war von Nutzen.",
        "es": "Todos los pasajes del contexto fueron útiles.",
        "pt": "Todos os trechos do contexto foram úteis.",
        "zh": "上下文中的每个段落都有用。",
    },
    counts_shares=True,
)
