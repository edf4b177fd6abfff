"""Hallucination: which share of a text's claims has nothing behind it in the context (lower is better)."""

from collections.abc import Mapping, Sequence
from typing import Literal

from app.domain.request import Options
from app.domain.run import Direction, Span
from app.judge.claims import Claims, checked_against, found_claims
from app.judge.exhibit import CONTEXT
from app.judge.scorer import Example, Examples, Scorer, five_bands
from app.judge.verdict import Analysis, Sureness, Verdict, counted, likely_any, quoting


class HallucinationVerdict(Sureness):
    """Whether a claim is a hallucination ("yes"), why, and of which kind (null when it is none).

    `passages` are the numbers, from 1, of the context passages that the verdict rests on.
    """

    verdict: Literal["yes", "no"]
    kind: Literal["contradicted", "unsupported"] | None
    reason: str | None
    claim: str
    span: Span
    passages: list[int]


class HallucinationAnalysis(Analysis):
    """What analyze finds: one verdict for every claim."""

    verdicts: list[HallucinationVerdict]


_KINDS = """\
supported: the passages say so, or it follows from them. contradicted: a passage says otherwise. opinion: it is an \
opinion, or says itself that it is a guess. unsupported: it is stated as a fact and the passages do not tell, however \
true it may be."""

_GROUNDS = """\
Go by the passages alone and not by what you know. Names, numbers, dates, amounts and negations must agree; other \
words for the same are fine."""

_ANALYSIS = f"""\
You look for hallucinations: claims without ground in the passages of a context. Decide on each claim.
{_KINDS}
{_GROUNDS}"""

_LABELLING = f"""\
You look for hallucinations: statements without ground in the passages of a context. Decide on each segment, by the \
worst that it states.
{_KINDS} none: it states nothing, as a question, an instruction, a greeting or a heading.
{_GROUNDS}"""

_EXPLANATION = """\
You explain a hallucination score to the person who asked for it, in two or three sentences: why it is what it is, \
which claims the context contradicts or does not hold, and the worst one in a few words. The score is the share of \
claims that are hallucinated; it is settled."""

_SHOWN = ("P1: The museum opens at ten and is closed on Mondays.", "P2: Entry costs five euros. Children pay nothing.")
# Text, label, reason, passages.
_WORKED = (
    ("A child gets in for free.", "supported", "It follows from P2.", (2,)),
    ("On Mondays it is open until noon.", "contradicted", "P1 says that it is closed then.", (1,)),
    ("The museum has a café.", "unsupported", "No passage mentions a café.", ()),
    ("The museum opens at ten.", "supported", "P1 says so.", (1,)),
    ("It is the loveliest museum there is.", "opinion", "It is a matter of taste.", ()),
    ("Shall we go there?", "none", "It is a question.", ()),
)
_EXAMPLES = Examples(
    tuple(Example(text, {"verdict": label}, why, cited) for text, label, why, cited in _WORKED), _SHOWN
)

# Where the context is judged in pieces the first of these counts that any piece calls for: ground in one is ground.
_FOUND = ("supported", "contradicted", "opinion", "unsupported")


def _read(labels: Mapping[str, str]) -> Mapping[str, str] | None:
    (label,) = labels.values()
    if label == "none":
        return None
    return {"verdict": "yes", "kind": label} if label in {"contradicted", "unsupported"} else {"verdict": "no"}


def _assessed(verdicts: Sequence[Verdict]) -> HallucinationAnalysis:
    return HallucinationAnalysis.model_validate(
        {
            "verdicts": [
                {
                    "verdict": verdict.labels["verdict"],
                    "kind": verdict.labels.get("kind"),
                    **quoting(verdict, "claim"),
                    "passages": [] if verdict.labels.get("kind") == "unsupported" else list(verdict.cited),
                }
                for verdict in verdicts
            ]
        }
    )


def _is_hallucinated(verdict: Verdict) -> bool:
    return verdict.labels["verdict"] == "yes"


def _value(verdicts: Sequence[Verdict], _: Options) -> float:
    """Hallucinated claims by claims, times how likely there is any; a text without claims has none."""
    claims = counted(verdicts)
    return counted(filter(_is_hallucinated, verdicts)) / claims * likely_any(verdicts) if claims else 0.0


def _weight(verdict: Verdict) -> float:
    return {"contradicted": 1.0, "unsupported": 0.5}.get(verdict.labels.get("kind", ""), 0.0)


SCORER = Scorer(
    id="hallucination",
    version="1",
    description=(
        "The share of the text's claims that the context contradicts, or that are stated as facts with nothing in the "
        "context behind them. Opinions and guesses that say so are no hallucination."
    ),
    direction=Direction.LOWER_IS_BETTER,
    needs=("output", "context"),
    options=Options,
    bands=five_bands(
        "no hallucination",
        "a few claims without ground",
        "many claims without ground",
        "mostly hallucinated",
        "hallucinated throughout",
    ),
    step_schemas={
        "preprocessStepResult": Claims.model_json_schema(mode="serialization"),
        "analyzeStepResult": HallucinationAnalysis.model_json_schema(mode="serialization"),
    },
    inquiries=(
        checked_against(
            CONTEXT,
            _FOUND,
            claims=_ANALYSIS,
            segments=_LABELLING,
            read=_read,
            examples=_EXAMPLES,
        ),
    ),
    selected=found_claims,
    assessed=_assessed,
    value=_value,
    weight=_weight,
    describe=lambda verdict: verdict.labels["kind"],
    explanation=_EXPLANATION,
    nothing_found={
        "en": "No hallucination was found in this text.",
        "fr": "Aucune hallucination n’a été trouvée dans ce texte.",
        "ko": "이 글에서 환각을 찾지 못했습니다.",
        "ja": "このテキストにハルシネーションは見つかりませんでした。",
        "de": "In diesem Text wurde keine Halluzination gefunden.",
        "es": "No se encontró ninguna alucinación en este texto.",
        "pt": "Nenhuma alucinação foi encontrada neste texto.",
        "zh": "在这段文本中没有发现幻觉内容。",
    },
    counts_shares=True,
)
