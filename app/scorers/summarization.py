"""Summarization: whether a summary says only what its source says, and what matters of it (higher is better)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from app.domain.model import Model
from app.domain.request import Options, RunRequest, Strategy
from app.domain.run import Direction, Span
from app.domain.scoring import scaled
from app.judge.claims import CLAIMS, Claims, found_claims
from app.judge.exhibit import OUTPUT, SOURCE
from app.judge.scorer import Assessment, Band, Extraction, Inquiry, Scorer, View
from app.judge.segment import Segment
from app.judge.subject import Subject, distinct, input_segments
from app.judge.verdict import Analysis, Sureness, Verdict, counted, sureness

Read = Callable[[Mapping[str, str]], Mapping[str, str] | None]

SEGMENTS_A_QUESTION = 4
"""A source of more segments than so many for each question is read in places only: a question takes a fact that
matters, and not every segment has one.
"""


class SummarizationOptions(Options):
    """Options of summarization beside the common ones."""

    max_questions: Annotated[int, Field(ge=1, le=50)] = Field(
        10, description="How many questions the source asks of the summary at most, spread over the source"
    )


class Question(Model):
    """A question in the judge's words, and where the segment of the source stands that answers it."""

    question: str
    input_span: Span


class SummarizationMaterial(Claims):
    """What preprocess finds: claims of the summary, and questions that its source answers."""

    questions: list[Question]


class ClaimVerdict(Sureness):
    """Whether the source supports a claim ("yes"), contradicts it ("no") or holds nothing about it ("unsure")."""

    verdict: Literal["yes", "no", "unsure"]
    reason: str | None
    claim: str
    span: Span


class QuestionVerdict(Sureness):
    """Whether the summary answers a question as its source does, and why."""

    verdict: Literal["yes", "no"]
    reason: str | None
    question: str
    input_span: Span


class SummarizationAnalysis(Analysis):
    """What analyze finds: a verdict for every claim and question, and both shares in 0..1 (null without verdicts)."""

    alignment: float | None
    coverage: float | None
    verdicts: list[ClaimVerdict]
    questions: list[QuestionVerdict]


QUESTIONS = Extraction(
    name="questions",
    version="1",
    key="questions",
    system="""\
You write questions about a text, by which a summary of it will be examined.
Question: one that is answered with yes or no, and with yes by the segment itself, about a fact that a good summary of \
the text would hold. One short sentence in the language of the text, with names in the place of pronouns, so that it \
can be understood alone. One for each such fact, under the number of its segment only.
No question: about what other segments say, a detail, an example, a repetition, an aside, a heading or a remark about \
the text.""",
    view=View(question_limit=0),
)

_GROUNDS = """\
Go by the source alone and not by what you know. Names, numbers, dates, amounts and negations must agree; other words \
for the same are fine."""

_CHECKING = f"""\
You check the claims of a summary against its source (S:): decide on each claim.
yes: the source says so, or it follows from it. no: the source says otherwise. unsure: it does not tell, however true \
the claim may be.
{_GROUNDS}"""

_LABELLING = f"""\
You check a summary against its source (S:): decide on each segment of the summary.
yes: the source says all that it states, or it follows from it. no: the source says otherwise. unsure: it does not \
tell all of it, however true it may be. none: it states no fact, as an opinion, a question, a greeting or a heading.
{_GROUNDS}"""

_EXAMINING = """\
You examine what a summary (A:) holds of its source: decide on each question. The source answers all of them, \
and with yes where that is an answer.
yes: the summary gives the same answer, or it follows from it. no: it gives another one, or none, even where the \
answer is easy to guess."""

_COVERING = """\
You examine what a summary (A:) holds of its source: decide on each segment of the source.
yes: the summary tells what matters in it. no: it says otherwise, or leaves that out. none: nothing in it has to stand \
in a good summary, as a detail, an example, a repetition, an aside or a heading."""

_EXPLANATION = """\
You explain the score of a summary to the person who asked for it, in two or three sentences: why it is what it is, \
which claims of the summary the source contradicts or does not hold, and which questions about the source it leaves \
unanswered. The score is the lower of two shares: claims that the source supports, and questions that the summary \
answers; it is settled."""

_WEIGHTS = {"no": 1.0, "unsure": 0.5}
_FOUND = {"no": "contradicted by the source", "unsure": "not found in the source"}
_OF_CLAIMS = View(neighbours=False, question_limit=0, exhibits=(SOURCE,), piecewise=True)
_OF_SEGMENTS = View(question_limit=0, exhibits=(SOURCE,), piecewise=True)
_OF_QUESTIONS = View(neighbours=False, question_limit=0, exhibits=(OUTPUT,), piecewise=True)
_OF_SOURCE = View(question_limit=0, exhibits=(OUTPUT,), piecewise=True)
_SUPPORT = ("yes", "no", "unsure")


def spread(items: Sequence[int], most: int) -> Sequence[int]:
    """Return at most so many of these items, each from the middle of a part of its own; the parts are equally long."""
    if len(items) <= most:
        return items
    return [items[(2 * part + 1) * len(items) // (2 * most)] for part in range(most)]


def _source(request: RunRequest, options: SummarizationOptions) -> Subject:
    source = input_segments(request, options)
    return source._replace(items=spread(source.items, options.max_questions * SEGMENTS_A_QUESTION))


def _asked(questions: Subject, options: SummarizationOptions) -> Subject:
    questions = distinct(questions)
    return questions._replace(items=spread(questions.items, options.max_questions))


def _read_support(labels: Mapping[str, str]) -> Mapping[str, str] | None:
    (label,) = labels.values()
    return None if label == "none" else {"alignment": label}


def _read_answer(labels: Mapping[str, str]) -> Mapping[str, str] | None:
    (label,) = labels.values()
    return None if label == "none" else {"coverage": label}


def _question(unit: Segment) -> dict[str, Any]:
    return {"question": unit.text, "input_span": {"start": unit.start, "end": unit.end}}


def _selected(claims: Sequence[Segment], questions: Sequence[Segment]) -> SummarizationMaterial:
    found = found_claims(claims)
    return SummarizationMaterial.model_validate(
        {"claims": found.claims, "items": found.items, "questions": [_question(unit) for unit in questions]}
    )


def _claim_verdict(verdict: Verdict) -> dict[str, Any]:
    claim = {"claim": verdict.item.text, "span": {"start": verdict.item.start, "end": verdict.item.end}}
    return {"verdict": verdict.labels["alignment"], "reason": verdict.reason, **sureness(verdict), **claim}


def _question_verdict(verdict: Verdict) -> dict[str, Any]:
    question = _question(verdict.item)
    return {"verdict": verdict.labels["coverage"], "reason": verdict.reason, **sureness(verdict), **question}


def _about(part: str, verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if part in verdict.labels]


def _share(part: str, verdicts: Sequence[Verdict]) -> float | None:
    """Return which share of a part's verdicts says yes; None where it has none."""
    found = _about(part, verdicts)
    return counted(verdict for verdict in found if verdict.labels[part] == "yes") / counted(found) if found else None


def _assessed(verdicts: Sequence[Verdict]) -> SummarizationAnalysis:
    shares = {part: _share(part, verdicts) for part in ("alignment", "coverage")}
    return SummarizationAnalysis.model_validate(
        {
            **{part: None if share is None else scaled(share, 1.0) for part, share in shares.items()},
            "verdicts": list(map(_claim_verdict, _about("alignment", verdicts))),
            "questions": list(map(_question_verdict, _about("coverage", verdicts))),
        }
    )


def _value(verdicts: Sequence[Verdict], _: SummarizationOptions) -> float | None:
    """min(alignment, coverage); the one there is where the other has nothing to judge, and None without both."""
    shares = [_share(part, verdicts) for part in ("alignment", "coverage")]
    return min((share for share in shares if share is not None), default=None)


def _weight(verdict: Verdict) -> float:
    (label,) = verdict.labels.values()
    return _WEIGHTS.get(label, 0.0)


def _describe(verdict: Verdict) -> str:
    return "not answered by the summary" if "coverage" in verdict.labels else _FOUND[verdict.labels["alignment"]]


def _by_segment(labels: tuple[str, ...], system: str, read: Read, view: View) -> dict[Strategy, Assessment]:
    return {
        Strategy.SINGLE_CALL: Assessment({"verdict": labels}, system, reasons=True, read=read, view=view),
        Strategy.LABELS: Assessment({"label": labels}, system, reasons=False, read=read, view=view),
    }


SCORER = Scorer(
    id="summarization",
    version="1",
    description=(
        "How good a summary of the input the output is: the lower of alignment, the share of its claims that the input "
        "supports, and coverage, the share of questions about the input that it answers."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("input", "output"),
    options=SummarizationOptions,
    bands=(
        Band("wrong or empty", 0.0, 0.0),
        Band("poor", 0.1, 0.3),
        Band("partly right and complete", 0.4, 0.6),
        Band("mostly right and complete", 0.7, 0.9999),
        Band("right and complete", 1.0, 1.0),
    ),
    step_schemas={
        "preprocessStepResult": SummarizationMaterial.model_json_schema(mode="serialization"),
        "analyzeStepResult": SummarizationAnalysis.model_json_schema(mode="serialization"),
    },
    inquiries=(
        Inquiry(
            preprocess=CLAIMS,
            assessments={
                Strategy.THREE_STEP: Assessment(
                    fields={"verdict": _SUPPORT},
                    system=_CHECKING,
                    reasons=True,
                    read=_read_support,
                    view=_OF_CLAIMS,
                    units="claims",
                ),
                **_by_segment((*_SUPPORT, "none"), _LABELLING, _read_support, _OF_SEGMENTS),
            },
        ),
        Inquiry(
            subject=_source,
            preprocess=QUESTIONS,
            narrowed=_asked,
            assessments={
                Strategy.THREE_STEP: Assessment(
                    fields={"verdict": ("yes", "no")},
                    system=_EXAMINING,
                    reasons=True,
                    read=_read_answer,
                    view=_OF_QUESTIONS,
                    units="questions",
                ),
                **_by_segment(("yes", "no", "none"), _COVERING, _read_answer, _OF_SOURCE),
            },
        ),
    ),
    selected=_selected,
    assessed=_assessed,
    value=_value,
    weight=_weight,
    describe=_describe,
    explanation=_EXPLANATION,
    nothing_found={
        "en": "The source supports every claim of this summary, and it answers every question about the source.",
        "fr": "La source confirme toutes les affirmations de ce résumé, qui répond à toutes les questions sur elle.",
        "ko": "원문이 이 요약의 모든 주장을 뒷받침하며, 요약은 원문에 대한 모든 질문에 답합니다.",
        "ja": "要約の主張はすべて原文によって裏付けられ、原文に関するすべての質問に要約が答えています。",
        "de": "Die Quelle stützt jede Aussage dieser Zusammenfassung, und sie beantwortet jede Frage zur Quelle.",
        "es": "La fuente respalda todas las afirmaciones de este resumen, que responde a toda pregunta sobre ella.",
        "pt": "A fonte sustenta todas as afirmações deste resumo, que responde a todas as perguntas sobre ela.",
        "zh": "原文支持这份摘要的所有陈述，摘要也回答了关于原文的所有问题。",
    },
    counts_shares=True,
)
