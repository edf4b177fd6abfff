"""Answer similarity: how much of a reference answer the output says, and what it adds (higher is better)."""

from collections.abc import Sequence
from math import fsum
from typing import Literal

from app.domain.request import Options
from app.domain.run import Direction, Span
from app.judge.claims import NO_CLAIM_IN_REFERENCE, NO_FACT, Claims, checked_against, found_claims
from app.judge.exhibit import GROUND_TRUTH, OUTPUT
from app.judge.scorer import Assessment, Inquiry, Scorer, View, by_every_strategy, five_bands, read_as
from app.judge.segment import Segment
from app.judge.subject import ground_truth_segments
from app.judge.verdict import Analysis, Sureness, Verdict, counted, quoting


class UnitVerdict(Sureness):
    """How the output stands to a claim of the reference answer, and why; `span` points into the ground truth."""

    verdict: Literal["exact", "semantic", "partial", "missing", "contradicted"]
    reason: str | None
    claim: str
    span: Span


class ExtraStatement(Sureness):
    """A segment of the output with something that the reference answer does not say."""

    verdict: Literal["extra"]
    reason: str | None
    statement: str
    span: Span


class AnswerSimilarityAnalysis(Analysis):
    """What analyze finds: one verdict for every claim of the reference answer, and what the output adds to it."""

    verdicts: list[UnitVerdict]
    extras: list[ExtraStatement]


_KINDS = """\
exact: it says so, in nearly the same words. semantic: it says so in other words, or it follows from what it says. \
contradicted: it says otherwise; names, numbers, dates, amounts and negations must agree."""

_ANALYSIS = f"""\
You compare an answer (A:) with the claims of a reference answer: decide on each claim what the answer makes of it.
{_KINDS} partial: it says a part of it, or says it less exactly. missing: it does not tell.
Go by the answer alone and not by what you know."""

_LABELLING = f"""\
You compare an answer (A:) with the segments of a reference answer: decide on each segment what the answer makes of it.
{_KINDS} partial: it says a part of it, or says it less exactly. missing: it does not tell. none: the segment \
{NO_FACT}.
Go by the answer alone and not by what you know."""

_ADDITION = """\
You look for what an answer adds to a reference answer (G:): decide on each segment of the answer.
yes: it states something that the reference answer neither says nor denies, and that does not follow from it. no: the \
reference answer says so, in whatever words, or says otherwise, or it states no fact, as a question, a greeting or a \
heading."""

_EXPLANATION = """\
You explain a similarity score to the person who asked for it, in two or three sentences: why it is what it is, what \
of the reference answer is missing, partial or contradicted, and what was added. The score counts the claims of the \
reference answer: 1 when it is said, half when partly, 0 when missing, minus 1 when contradicted, and a little less \
for every addition; it is settled."""

_CREDITS = {"exact": 1.0, "semantic": 1.0, "partial": 0.5, "missing": 0.0, "contradicted": -1.0}
_EXTRA, _MOST_EXTRA = 0.05, 0.2
# Where the answer is shown in pieces the first of these counts that any piece calls for: denied once is denied.
_FOUND = ("exact", "semantic", "contradicted", "partial", "missing")


def _is_extra(verdict: Verdict) -> bool:
    return verdict.labels.get("extra") == "yes"


def _units(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if "verdict" in verdict.labels]


def _selected(units: Sequence[Segment], _: Sequence[Segment]) -> Claims:
    return found_claims(units)


def _assessed(verdicts: Sequence[Verdict]) -> AnswerSimilarityAnalysis:
    return AnswerSimilarityAnalysis.model_validate(
        {
            "verdicts": [
                {"verdict": verdict.labels["verdict"], **quoting(verdict, "claim")} for verdict in _units(verdicts)
            ],
            "extras": [
                {"verdict": "extra", **quoting(verdict, "statement")} for verdict in filter(_is_extra, verdicts)
            ],
        }
    )


def _value(verdicts: Sequence[Verdict], _: Options) -> float | None:
    """The credits of the units less 0.05 for every extra statement (at most 0.2), by units, within 0..1.

    A reference answer without units gives no score.
    """
    units = _units(verdicts)
    if not units:
        return None
    credit = fsum(_CREDITS[unit.labels["verdict"]] * unit.share for unit in units)
    credit -= min(_MOST_EXTRA, _EXTRA * counted(filter(_is_extra, verdicts)))
    return min(1.0, max(0.0, credit / counted(units)))


def _weight(verdict: Verdict) -> float:
    if "verdict" in verdict.labels:
        return 1.0 - _CREDITS[verdict.labels["verdict"]]
    return _EXTRA if _is_extra(verdict) else 0.0


SCORER = Scorer(
    id="answer-similarity",
    version="1",
    description=(
        "How much of the reference answer's claims the output says, in whatever words. What it denies counts against "
        "it, and a little what it adds."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output", "groundTruth"),
    options=Options,
    bands=five_bands("not similar", "hardly similar", "partly similar", "mostly similar", "the same content"),
    step_schemas={
        "preprocessStepResult": Claims.model_json_schema(mode="serialization"),
        "analyzeStepResult": AnswerSimilarityAnalysis.model_json_schema(mode="serialization"),
    },
    inquiries=(
        checked_against(
            OUTPUT,
            _FOUND,
            claims=_ANALYSIS,
            segments=_LABELLING,
            cites=False,
            subject=ground_truth_segments,
            essential=True,
        ),
        Inquiry(
            assessments=by_every_strategy(
                Assessment(
                    fields={"verdict": ("no", "yes")},
                    system=_ADDITION,
                    reasons=True,
                    read=read_as("extra"),
                    view=View(exhibits=(GROUND_TRUTH,), piecewise=True),
                )
            )
        ),
    ),
    selected=_selected,
    assessed=_assessed,
    value=_value,
    weight=_weight,
    describe=lambda verdict: verdict.labels.get("verdict", "added"),
    explanation=_EXPLANATION,
    nothing_found={
        "en": "The output says all that the reference answer says, and nothing else.",
        "fr": "Le texte dit tout ce que dit la réponse de référence, et rien d’autre.",
        "ko": "이 글은 기준 답변의 내용을 모두 담고 있으며 덧붙인 것이 없습니다.",
        "ja": "このテキストは参照回答の内容をすべて述べており、付け加えたものはありません。",
        "de": "Der Text sagt alles, was die Referenzantwort sagt, und sonst nichts.",
        "es": "El texto dice todo lo que dice la respuesta de referencia, y nada más.",
        "pt": "O texto diz tudo o que diz a resposta de referência, e nada mais.",
        "zh": "这段文本说出了参考答案的全部内容，没有添加别的。",
    },
    nothing_to_score=NO_CLAIM_IN_REFERENCE,
    counts_shares=True,
)
