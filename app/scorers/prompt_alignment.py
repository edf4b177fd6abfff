"""Prompt alignment: whether an answer does what its prompt asks, as it asks for it (higher is better)."""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, Literal

from app.domain.model import Model
from app.domain.request import Options, RunRequest, Strategy
from app.domain.run import Direction, Span
from app.judge.exhibit import OUTPUT
from app.judge.scorer import Assessment, Band, Extraction, Inquiry, Scorer, View
from app.judge.segment import Segment
from app.judge.subject import Subject, distinct, input_segments, listed
from app.judge.verdict import Analysis, Sureness, Verdict, counted, sureness

DIMENSIONS = ("intent", "completeness", "tone", "format")


class Requirement(Model):
    """A requirement in the judge's words, and where the segment of the input stands that makes it."""

    requirement: str
    input_span: Span


class Requirements(Model):
    """What preprocess finds in the input."""

    requirements: list[Requirement]


class RequirementVerdict(Sureness):
    """Whether the output fulfils a requirement, and why."""

    verdict: Literal["yes", "no"]
    reason: str | None
    requirement: str
    input_span: Span


class DimensionVerdict(Sureness):
    """How well the output meets the prompt in one dimension, and why."""

    verdict: Literal["full", "partial", "none"]
    reason: str | None
    dimension: Literal["intent", "completeness", "tone", "format"]


class PromptAlignmentAnalysis(Analysis):
    """What analyze finds: a verdict for every requirement and dimension that applies."""

    requirements: list[RequirementVerdict]
    dimensions: list[DimensionVerdict]


REQUIREMENTS = Extraction(
    name="requirements",
    version="1",
    key="requirements",
    system="""\
You split a prompt into requirements, so that each can be checked alone.
Requirement: what the prompt asks of its answer in one point, as one short sentence in the words of the prompt. Take \
questions, tasks, limits and prohibitions. Two in one segment make two. Add nothing, leave none out and say each once.
No requirement: background, material to work on, a greeting, thanks, a remark about the asker.""",
    view=View(question_limit=0),
)

_REQUIREMENT = """\
Go by the answer itself and not by what it says about itself. One that is fulfilled in part is not fulfilled."""

_CHECKING = f"""\
You check whether an answer (A:) does what its prompt (the lines with ?) requires: decide on each requirement.
yes: the answer fulfils it. no: it does not. not_applicable: its condition did not arise.
{_REQUIREMENT}"""

_LABELLING = f"""\
You check whether an answer (A:) does what its prompt requires: decide on each segment of the prompt.
yes: the answer fulfils all that the segment requires. no: it does not. none: the segment requires nothing, as \
background, material to work on, a greeting or thanks, or its condition did not arise.
{_REQUIREMENT}"""

_GRADING = """\
You judge how well an answer (A:) meets its prompt (the lines with ?), in each of these dimensions.
intent: it does what the prompt is for. completeness: it deals with all that was asked, as thoroughly as was asked. \
tone: its tone is what the prompt asks for or, where it asks for none, suits it. format: the same of its form, length \
and language.
full: without a fault worth a mention. partial: in part, or with faults. none: it does not. not_applicable: the \
prompt asks for nothing, as a greeting or thanks.
Whether it is true does not matter."""

_EXPLANATION = """\
You explain a prompt alignment score to the person who asked for it, in two or three sentences: why it is what it is, \
which requirements the answer does not fulfil, and where it falls short in intent, completeness, tone or format. The \
score weighs intent most, then the requirements, completeness, and tone and format; it is settled."""

WEIGHTS = {"intent": 0.4, "requirements": 0.3, "completeness": 0.2, "tone and format": 0.1}
_CREDIT = {"yes": 1.0, "no": 0.0, "full": 1.0, "partial": 0.5, "none": 0.0}
_PARTS = {"intent": "intent", "completeness": "completeness", "tone": "tone and format", "format": "tone and format"}
_VIEW = View(neighbours=False, exhibits=(OUTPUT,))
_OF_SEGMENTS = View(question_limit=0, exhibits=(OUTPUT,))
_GRADES = ("full", "partial", "none", "not_applicable")


def _dimensions(_: RunRequest, __: Options) -> Subject:
    return listed(DIMENSIONS)


def _read_requirement(labels: Mapping[str, str]) -> Mapping[str, str] | None:
    (label,) = labels.values()
    return {"requirement": label} if label in {"yes", "no"} else None


def _read_grade(labels: Mapping[str, str]) -> Mapping[str, str] | None:
    (label,) = labels.values()
    return None if label == "not_applicable" else {"dimension": label}


def _dimension(verdict: Verdict) -> str | None:
    return DIMENSIONS[verdict.place] if "dimension" in verdict.labels else None


def _credit(verdict: Verdict) -> float:
    (label,) = verdict.labels.values()
    return _CREDIT[label]


def _part(verdict: Verdict) -> str:
    dimension = _dimension(verdict)
    return "requirements" if dimension is None else _PARTS[dimension]


def _requirement(unit: Segment) -> dict[str, Any]:
    return {"requirement": unit.text, "input_span": {"start": unit.start, "end": unit.end}}


def _selected(requirements: Sequence[Segment], _: Sequence[Segment]) -> Requirements:
    return Requirements.model_validate({"requirements": [_requirement(unit) for unit in requirements]})


def _assessed(verdicts: Sequence[Verdict]) -> PromptAlignmentAnalysis:
    found: dict[str, list[dict[str, Any]]] = {"requirements": [], "dimensions": []}
    for verdict in verdicts:
        (label,) = verdict.labels.values()
        dimension = _dimension(verdict)
        about = _requirement(verdict.item) if dimension is None else {"dimension": dimension}
        told = {"verdict": label, "reason": verdict.reason, **sureness(verdict), **about}
        found["requirements" if dimension is None else "dimensions"].append(told)
    return PromptAlignmentAnalysis.model_validate(found)


def _value(verdicts: Sequence[Verdict], _: Options) -> float | None:
    """The weighted mean of the parts' shares, over the parts there are; None where the prompt asks for nothing."""
    parts: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        parts.setdefault(_part(verdict), []).append(verdict)
    if parts.keys().isdisjoint({"intent", "requirements"}):
        return None
    met = {
        part: fsum(_credit(verdict) * verdict.share for verdict in found) / counted(found)
        for part, found in parts.items()
    }
    return fsum(WEIGHTS[part] * share for part, share in met.items()) / fsum(WEIGHTS[part] for part in met)


def _describe(verdict: Verdict) -> str:
    dimension = _dimension(verdict)
    if dimension is None:
        return "not fulfilled"
    return f"{dimension} {'partly met' if verdict.labels['dimension'] == 'partial' else 'not met'}"


_WITH_REASONS = Assessment(
    fields={"verdict": _GRADES}, system=_GRADING, reasons=True, read=_read_grade, view=_VIEW, units="dimensions"
)

SCORER = Scorer(
    id="prompt-alignment",
    version="1",
    description=(
        "How well the output does what its prompt, the input, asks for: the prompt's intent, every requirement found "
        "in it, completeness, tone and format, weighed in this order."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("input", "output"),
    options=Options,
    bands=(
        Band("does not follow the prompt", 0.0, 0.0),
        Band("hardly follows the prompt", 0.1, 0.3),
        Band("partly follows the prompt", 0.4, 0.6),
        Band("mostly follows the prompt", 0.7, 0.9999),
        Band("follows the prompt in everything", 1.0, 1.0),
    ),
    step_schemas={
        "preprocessStepResult": Requirements.model_json_schema(mode="serialization"),
        "analyzeStepResult": PromptAlignmentAnalysis.model_json_schema(mode="serialization"),
    },
    inquiries=(
        Inquiry(
            subject=input_segments,
            preprocess=REQUIREMENTS,
            narrowed=distinct,
            assessments={
                Strategy.THREE_STEP: Assessment(
                    fields={"verdict": ("yes", "no", "not_applicable")},
                    system=_CHECKING,
                    reasons=True,
                    read=_read_requirement,
                    view=_VIEW,
                    units="requirements",
                ),
                Strategy.SINGLE_CALL: Assessment(
                    fields={"verdict": ("yes", "no", "none")},
                    system=_LABELLING,
                    reasons=True,
                    read=_read_requirement,
                    view=_OF_SEGMENTS,
                ),
                Strategy.LABELS: Assessment(
                    fields={"label": ("yes", "no", "none")},
                    system=_LABELLING,
                    reasons=False,
                    read=_read_requirement,
                    view=_OF_SEGMENTS,
                ),
            },
        ),
        Inquiry(
            subject=_dimensions,
            assessments={
                Strategy.THREE_STEP: _WITH_REASONS,
                Strategy.SINGLE_CALL: _WITH_REASONS,
                Strategy.LABELS: Assessment(
                    fields={"label": _GRADES},
                    system=_GRADING,
                    reasons=False,
                    read=_read_grade,
                    view=_VIEW,
                    units="dimensions",
                ),
            },
        ),
    ),
    selected=_selected,
    assessed=_assessed,
    value=_value,
    weight=lambda verdict: WEIGHTS[_part(verdict)] * (1.0 - _credit(verdict)),
    describe=_describe,
    explanation=_EXPLANATION,
    nothing_found={
        "en": "This answer follows its prompt in everything.",
        "fr": "Cette réponse suit la consigne en tout point.",
        "ko": "이 답변은 요청을 모든 면에서 따릅니다.",
        "ja": "この回答は指示にすべて従っています。",
        "de": "Diese Antwort folgt der Aufforderung in allem.",
        "es": "Esta respuesta sigue las instrucciones en todo.",
        "pt": "Esta resposta segue as instruções em tudo.",
        "zh": "这个回答在各方面都符合提示的要求。",
    },
    nothing_to_score={
        "en": "The input asks for nothing that an answer could follow.",
        "fr": "L’entrée ne demande rien qu’une réponse puisse suivre.",
        "ko": "입력에 답변이 따라야 할 요청이 없습니다.",
        "ja": "入力には回答が従うべき指示がありません。",
        "de": "Die Eingabe verlangt nichts, dem eine Antwort folgen könnte.",
        "es": "La entrada no pide nada que una respuesta pueda seguir.",
        "pt": "A entrada não pede nada que uma resposta possa seguir.",
        "zh": "输入没有提出回答可以遵循的要求。",
    },
    counts_shares=True,
)
