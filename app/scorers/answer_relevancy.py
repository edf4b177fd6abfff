"""Answer relevancy: which share of an answer's statements is about the question (higher is better)."""

from collections.abc import Sequence
from math import fsum
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from app.domain.model import Model
from app.domain.request import Options
from app.domain.run import Direction, Span
from app.judge.scorer import (
    Assessment,
    Example,
    Examples,
    Inquiry,
    Scorer,
    as_verdict,
    by_every_strategy,
    five_bands,
)
from app.judge.segment import Segment
from app.judge.verdict import Analysis, Sureness, Verdict, counted, quoting


class AnswerRelevancyOptions(Options):
    """Options of answer-relevancy beside the common ones."""

    uncertainty_weight: Annotated[FiniteFloat, Field(ge=0, le=1)] = Field(
        0.3, description="How much a statement counts that may be relevant"
    )


class Statement(Model):
    """A statement, verbatim, and where it stands."""

    statement: str
    span: Span


class Statements(Model):
    """What was judged: the segments that state something."""

    statements: list[str]
    items: list[Statement]


class StatementVerdict(Sureness):
    """Whether a statement is relevant to the input, and why."""

    verdict: Literal["yes", "unsure", "no"]
    reason: str | None
    statement: str
    span: Span


class AnswerRelevancyAnalysis(Analysis):
    """What analyze finds: one verdict for every statement."""

    verdicts: list[StatementVerdict]


_ANALYSIS = """\
You judge whether an answer keeps to what was asked (the lines with ?): decide on each segment.
yes: it answers what was asked or a part of it, or says what is needed to follow the answer, as a reason, an example, \
a step or a caution. unsure: it is near the subject, and it is not plain that it helps. no: it is about something \
else, evades what was asked or repeats what was said. none: it states nothing, as a greeting or a heading.
Whether it is true does not matter: a wrong answer to the question is relevant."""

# Text, label, reason.
_WORKED = (
    ("Good morning!", "none", "It is a greeting."),
    ("It opens at ten.", "yes", "It answers the question."),
    ("On Mondays it stays closed.", "yes", "It says when it does not open."),
    ("The roof was painted last year.", "no", "It is about something else."),
    ("There may be a queue at the door.", "unsure", "It is near the subject and may help."),
    ("That depends on many things.", "no", "It evades the question."),
)
_EXAMPLES = Examples(
    tuple(Example(text, {"verdict": label}, why) for text, label, why in _WORKED), ("? When does the museum open?",)
)

_EXPLANATION = """\
You explain a relevancy score to the person who asked for it, in two or three sentences: why it is what it is, and \
which statements are not about the question, the worst one in a few words. The score is the share of statements that \
are relevant; it is settled."""

_WEIGHTS = {"yes": 0.0, "unsure": 0.5, "no": 1.0}


def _selected(units: Sequence[Segment]) -> Statements:
    items = [Statement(statement=unit.text, span=Span(start=unit.start, end=unit.end)) for unit in units]
    return Statements(statements=[item.statement for item in items], items=items)


def _assessed(verdicts: Sequence[Verdict]) -> AnswerRelevancyAnalysis:
    return AnswerRelevancyAnalysis.model_validate(
        {
            "verdicts": [
                {
                    "verdict": verdict.labels["verdict"],
                    **quoting(verdict, "statement"),
                }
                for verdict in verdicts
            ]
        }
    )


def _value(verdicts: Sequence[Verdict], options: AnswerRelevancyOptions) -> float | None:
    """(yes + uncertaintyWeight * unsure) / statements; an answer that states nothing has no score."""
    if not verdicts:
        return None
    credit = {"yes": 1.0, "unsure": options.uncertainty_weight, "no": 0.0}
    return fsum(credit[verdict.labels["verdict"]] * verdict.share for verdict in verdicts) / counted(verdicts)


_ASSESSMENT = Assessment(
    fields={"verdict": ("yes", "unsure", "no", "none")},
    system=_ANALYSIS,
    reasons=True,
    read=as_verdict,
    examples=_EXAMPLES,
)

SCORER = Scorer(
    id="answer-relevancy",
    version="1",
    description=(
        "The share of the answer's statements that are about what was asked. Whether they are true does not matter."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("input", "output"),
    options=AnswerRelevancyOptions,
    bands=five_bands(
        "not relevant",
        "hardly relevant",
        "partly relevant",
        "mostly relevant",
        "relevant throughout",
    ),
    step_schemas={
        "preprocessStepResult": Statements.model_json_schema(mode="serialization"),
        "analyzeStepResult": AnswerRelevancyAnalysis.model_json_schema(mode="serialization"),
    },
    inquiries=(Inquiry(assessments=by_every_strategy(_ASSESSMENT)),),
    selected=_selected,
    assessed=_assessed,
    value=_value,
    weight=lambda verdict: _WEIGHTS[verdict.labels["verdict"]],
    describe=lambda verdict: {"no": "not relevant", "unsure": "perhaps relevant"}[verdict.labels["verdict"]],
    explanation=_EXPLANATION,
    nothing_found={
        "en": "Every statement of this answer is relevant.",
        "fr": "Toutes les affirmations de cette réponse sont pertinentes.",
        "ko": "이 답변의 모든 진술은 질문과 관련이 있습니다.",
        "ja": "この回答の記述はすべて質問に関連しています。",
        "de": "Jede Aussage dieser Antwort gehört zur Frage.",
        "es": "Todas las afirmaciones de esta respuesta son pertinentes.",
        "pt": "Todas as afirmações desta resposta são relevantes.",
        "zh": "这个回答中的每句话都与问题相关。",
    },
    nothing_to_score={
        "en": "This answer states nothing that could be relevant.",
        "fr": "Cette réponse n’affirme rien qui puisse être pertinent.",
        "ko": "이 답변에는 관련성을 판단할 진술이 없습니다.",
        "ja": "この回答には関連性を判断できる記述がありません。",
        "de": "Diese Antwort sagt nichts aus, was zur Frage gehören könnte.",
        "es": "Esta respuesta no afirma nada que pueda ser pertinente.",
        "pt": "Esta resposta não afirma nada que possa ser relevante.",
        "zh": "这个回答中没有可以判断相关性的陈述。",
    },
    counts_shares=True,
)
