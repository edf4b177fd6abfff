"""Noise sensitivity: how well an answer holds its quality when its input is noisy (higher is better)."""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, Literal, get_args

from app.domain.request import Options, RunRequest
from app.domain.run import Direction, Span
from app.judge.exhibit import GROUND_TRUTH, OUTPUT, Exhibit
from app.judge.scorer import Assessment, Inquiry, Scorer, View, by_every_strategy, five_bands, read_as
from app.judge.subject import Subject, listed
from app.judge.verdict import Analysis, Sureness, Verdict, counted, quoting, sureness

Dimension = Literal["accuracy", "completeness", "relevance", "coherence", "groundedness"]
Impact = Literal["none", "minimal", "moderate", "significant", "severe"]
IMPACTS: tuple[Impact, ...] = get_args(Impact)

DIMENSIONS: Mapping[Dimension, str] = {
    "accuracy": "Accuracy: names, numbers and facts are right.",
    "completeness": "Completeness: all is said that the reference answer says.",
    "relevance": "Relevance: it keeps to what is asked without the noise.",
    "coherence": "Coherence: it is clear, in order and does not contradict itself.",
    "groundedness": "Groundedness: nothing is made up or taken over from the noise.",
}


class DimensionVerdict(Sureness):
    """How far the noise has impaired the output in this respect, and why."""

    dimension: Dimension
    impact: Impact
    reason: str | None


class Issue(Sureness):
    """A segment of the output that stems from the noise."""

    verdict: Literal["issue"]
    reason: str | None
    statement: str
    span: Span


class NoiseSensitivityAnalysis(Analysis):
    """What analyze finds: one verdict for every dimension, and the issues."""

    verdicts: list[DimensionVerdict]
    issues: list[Issue]


_COMPARED = """\
An answer was given to an input with noise (N:): misspellings, distractions, wrong or irrelevant additions. The \
reference answer (G:) was given to the same input without it (Q:, if shown)."""

_ANALYSIS = f"""\
You judge what noise does to an answer. {_COMPARED}
Decide on each numbered quality how far the answer (A:) has lost it to the noise, compared with the reference answer.
none: nothing is lost. minimal: a trifle, which no reader would mind. moderate: plainly worse, and still of use. \
significant: much worse, and of little use. severe: spoiled.
Other words, another order and another length are no loss."""

_SEARCH = f"""\
You look for what noise has left in an answer. {_COMPARED}
Decide on each segment of the answer that was given to the noise.
yes: it stems from the noise: it takes up a distraction, takes over something wrong or was misled, and the reference \
answer says nothing like it. no: all else, also what is wrong or missing for another reason."""

_EXPLANATION = """\
You explain a score to the person who asked for it, in two or three sentences: how well an answer held its quality \
although its input was noisy, in which respects the noise has impaired it, and by what. The score is the mean over \
five qualities, less a tenth for each statement that stems from the noise, up to three; it is settled."""

_VALUES = {"none": 1.0, "minimal": 0.85, "moderate": 0.6, "significant": 0.3, "severe": 0.1}
_ISSUE, _MOST_ISSUES = 0.1, 0.3


def _question(request: RunRequest, _: Any) -> Sequence[str]:
    return (request.question or "",)


def _noisy_input(request: RunRequest, _: Any) -> Sequence[str]:
    return (request.noisy_input or "",)


_NOISE = (
    Exhibit("Q:", "Q: marks the input without noise", _question),
    Exhibit("N:", "N: marks the input with noise", _noisy_input),
    GROUND_TRUTH,
)


def _dimensions(_: RunRequest, __: Options) -> Subject:
    return listed(list(DIMENSIONS.values()), [{"dimension": dimension} for dimension in DIMENSIONS])


def _is_issue(verdict: Verdict) -> bool:
    return verdict.labels.get("issue") == "yes"


def _impacts(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if "impact" in verdict.labels]


def _assessed(verdicts: Sequence[Verdict]) -> NoiseSensitivityAnalysis:
    return NoiseSensitivityAnalysis.model_validate(
        {
            "verdicts": [
                {**one.item.known, "impact": one.labels["impact"], "reason": one.reason, **sureness(one)}
                for one in _impacts(verdicts)
            ],
            "issues": [{"verdict": "issue", **quoting(issue, "statement")} for issue in filter(_is_issue, verdicts)],
        }
    )


def _value(verdicts: Sequence[Verdict], _: Options) -> float:
    """The mean of what the impacts leave, less 0.1 for each issue (at most 0.3); never below 0."""
    impacts = _impacts(verdicts)
    mean = fsum(_VALUES[one.labels["impact"]] * one.share for one in impacts) / counted(impacts)
    return max(0.0, mean - min(_MOST_ISSUES, _ISSUE * counted(filter(_is_issue, verdicts))))


def _weight(verdict: Verdict) -> float:
    if "impact" in verdict.labels:
        return (1.0 - _VALUES[verdict.labels["impact"]]) / len(DIMENSIONS)
    return _ISSUE if _is_issue(verdict) else 0.0


def _describe(verdict: Verdict) -> str:
    if "impact" in verdict.labels:
        return f"{verdict.item.known['dimension']}, {verdict.labels['impact']} impact"
    return "from the noise"


SCORER = Scorer(
    id="noise-sensitivity",
    version="1",
    description=(
        "How well an answer to a noisy input holds its quality, compared with the answer to the clean one: five "
        "qualities, and the statements that stem from the noise."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output", "groundTruth", "metadata.noisyInput"),
    options=Options,
    bands=five_bands(
        "spoiled by the noise", "heavily impaired", "clearly impaired", "slightly impaired", "not impaired by the noise"
    ),
    step_schemas={"analyzeStepResult": NoiseSensitivityAnalysis.model_json_schema(mode="serialization")},
    inquiries=(
        Inquiry(
            subject=_dimensions,
            assessments=by_every_strategy(
                Assessment(
                    fields={"impact": IMPACTS},
                    system=_ANALYSIS,
                    reasons=True,
                    read=read_as("impact"),
                    view=View(neighbours=False, question_limit=0, exhibits=(*_NOISE, OUTPUT)),
                    units="qualities",
                )
            ),
        ),
        Inquiry(
            assessments=by_every_strategy(
                Assessment(
                    fields={"verdict": ("no", "yes")},
                    system=_SEARCH,
                    reasons=True,
                    read=read_as("issue"),
                    view=View(question_limit=0, exhibits=_NOISE),
                )
            )
        ),
    ),
    selected=None,
    assessed=_assessed,
    value=_value,
    weight=_weight,
    describe=_describe,
    explanation=_EXPLANATION,
    nothing_found={
        "en": "The noise in the input has not impaired this answer.",
        "fr": "Le bruit dans la question n’a pas altéré cette réponse.",
        "ko": "입력에 섞인 잡음이 이 답변에 영향을 주지 않았습니다.",
        "ja": "入力のノイズはこの回答に影響していません。",
        "de": "Die Störungen in der Eingabe haben diese Antwort nicht beeinträchtigt.",
        "es": "El ruido de la entrada no ha afectado a esta respuesta.",
        "pt": "O ruído na entrada não prejudicou esta resposta.",
        "zh": "输入中的噪声没有影响这个回答。",
    },
    counts_shares=True,
)
