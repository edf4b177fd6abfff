"""Context relevance: how much the passages of a context have to do with the question (higher is better)."""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Literal, get_args

from app.domain.request import Options, Strategy
from app.domain.run import Direction
from app.judge.exhibit import OUTPUT
from app.judge.scorer import Assessment, Inquiry, Scorer, View, five_bands
from app.judge.subject import context_passages
from app.judge.verdict import Analysis, Sureness, Verdict, counted, sureness

Relevance = Literal["high", "medium", "low", "none"]
RELEVANCES: tuple[Relevance, ...] = get_args(Relevance)


class PassageRelevance(Sureness):
    """How relevant the passage with this number (from 1, in the order of `context`) is, whether it was used, and why.

    `used` is null for passages that are not highly relevant.
    """

    number: int
    relevance: Relevance
    used: bool | None
    reason: str | None


class ContextRelevanceAnalysis(Analysis):
    """What analyze finds: one verdict for every passage that is not blank."""

    verdicts: list[PassageRelevance]


_RELEVANCE = """\
high: it answers the question or a part of it. medium: it helps to answer it. low: it is about the same subject and \
does not help. none: it is about something else."""

_ANALYSIS = f"""\
You judge passages that were fetched to answer a question (the lines with ?): decide how relevant each is to it.
{_RELEVANCE}
used: yes when the answer that was given (A:) says something that this passage holds, else no."""

_LABELLING = f"""\
You judge passages that were fetched to answer a question (the lines with ?): give each one label.
{_RELEVANCE}
A passage of high relevance is high_used when the answer that was given (A:) says something that it holds, else \
high_unused."""

_EXPLANATION = """\
You explain a relevance score to the person who asked for it, in two or three sentences: why it is what it is, which \
passages do not belong to the question and which relevant ones the answer left unused. The score is the mean \
relevance of the passages, less a tenth for each highly relevant one that was left unused; it is settled."""

_VALUES = {"high": 1.0, "medium": 0.7, "low": 0.3, "none": 0.0}
_PENALTY = 0.1
_VIEW = View(neighbours=False, exhibits=(OUTPUT,))


def _read(labels: Mapping[str, str]) -> Mapping[str, str]:
    return labels if labels["relevance"] == "high" else {"relevance": labels["relevance"]}


def _read_label(labels: Mapping[str, str]) -> Mapping[str, str]:
    relevance, _, use = labels["label"].partition("_")
    return {"relevance": relevance, "used": "yes" if use == "used" else "no"} if use else {"relevance": relevance}


def _is_unused(verdict: Verdict) -> bool:
    return verdict.labels.get("used") == "no"


def _assessed(verdicts: Sequence[Verdict]) -> ContextRelevanceAnalysis:
    return ContextRelevanceAnalysis.model_validate(
        {
            "verdicts": [
                {
                    "number": verdict.place + 1,
                    "relevance": verdict.labels["relevance"],
                    "used": not _is_unused(verdict) if "used" in verdict.labels else None,
                    "reason": verdict.reason,
                    **sureness(verdict),
                }
                for verdict in verdicts
            ]
        }
    )


def _value(verdicts: Sequence[Verdict], _: Options) -> float | None:
    """The mean relevance, less 0.1 for each highly relevant passage that was left unused; never below 0."""
    if not verdicts:
        return None
    mean = fsum(_VALUES[verdict.labels["relevance"]] * verdict.share for verdict in verdicts) / counted(verdicts)
    return max(0.0, mean - _PENALTY * counted(filter(_is_unused, verdicts)))


def _weight(verdict: Verdict) -> float:
    return 1.0 - _VALUES[verdict.labels["relevance"]] + _PENALTY * _is_unused(verdict)


def _describe(verdict: Verdict) -> str:
    found = "high, left unused" if _is_unused(verdict) else verdict.labels["relevance"]
    return f"passage {verdict.place + 1}, relevance {found}"


_WITH_REASONS = Assessment(
    fields={"relevance": RELEVANCES, "used": ("yes", "no")},
    system=_ANALYSIS,
    reasons=True,
    read=_read,
    view=_VIEW,
    units="passages",
)

SCORER = Scorer(
    id="context-relevance",
    version="1",
    description=(
        "How much the passages of the context have to do with the question, less a tenth for each highly relevant "
        "passage that the answer left unused."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("input", "output", "context"),
    options=Options,
    bands=five_bands(
        "not relevant",
        "hardly relevant",
        "partly relevant",
        "mostly relevant",
        "relevant and used throughout",
    ),
    step_schemas={"analyzeStepResult": ContextRelevanceAnalysis.model_json_schema(mode="serialization")},
    inquiries=(
        Inquiry(
            subject=context_passages,
            assessments={
                Strategy.THREE_STEP: _WITH_REASONS,
                Strategy.SINGLE_CALL: _WITH_REASONS,
                Strategy.LABELS: Assessment(
                    fields={"label": ("high_used", "high_unused", "medium", "low", "none")},
                    system=_LABELLING,
                    reasons=False,
                    read=_read_label,
                    view=_VIEW,
                    units="passages",
                ),
            },
        ),
    ),
    selected=None,
    assessed=_assessed,
    value=_value,
    weight=_weight,
    describe=_describe,
    explanation=_EXPLANATION,
    nothing_found={
        "en": "Every passage of the context is relevant, and the answer used them all.",
        "fr": "Tous les passages du contexte sont pertinents et la réponse les a tous utilisés.",
        "ko": "제공된 문맥의 모든 구절이 관련성이 높으며 답변에 모두 사용되었습니다.",
        "ja": "コンテキストのすべての文章は関連性が高く、回答に使われています。",
        "de": "Jeder Abschnitt des Kontexts gehört zur Frage, und die Antwort hat alle genutzt.",
        "es": "Todos los pasajes del contexto son pertinentes y la respuesta los utilizó todos.",
        "pt": "Todos os trechos do contexto são relevantes e a resposta usou todos.",
        "zh": "上下文中的每个段落都相关，并且回答都用到了。",
    },
    counts_shares=True,
)
