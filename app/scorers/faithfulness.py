"""Faithfulness: which share of a text's claims the context supports (higher is better)."""

from collections.abc import Sequence
from typing import Literal

from app.domain.request import Options
from app.domain.run import Direction, Span
from app.judge.claims import BY_PASSAGES, NO_FACT, Claims, checked_against, found_claims
from app.judge.exhibit import CONTEXT
from app.judge.scorer import Example, Examples, Scorer, five_bands
from app.judge.verdict import Analysis, Sureness, Verdict, counted, quoting


class FaithfulnessVerdict(Sureness):
    """Whether the context supports a claim ("yes"), contradicts it ("no") or holds nothing about it ("unsure").

    `passages` are the numbers, from 1, of the context passages that the verdict rests on.
    """

    verdict: Literal["yes", "no", "unsure"]
    reason: str | None
    claim: str
    span: Span
    passages: list[int]


class FaithfulnessAnalysis(Analysis):
    """What analyze finds: one verdict for every claim."""

    verdicts: list[FaithfulnessVerdict]


_ANALYSIS = f"""\
You check claims against the passages of a context: decide on each claim.
yes: passages say so, or it follows from them. no: a passage says otherwise. unsure: they do not tell, however true \
the claim may be.
{BY_PASSAGES}"""

_LABELLING = f"""\
You check a text against the passages of a context: decide on each segment.
yes: passages say all that it states, or it follows from them. no: a passage says otherwise. unsure: they do not tell \
all of it, however true it may be. none: it {NO_FACT}.
{BY_PASSAGES}"""

_EXPLANATION = """\
You explain a faithfulness score to the person who asked for it, in two or three sentences: why it is what it is, \
which claims the context contradicts or does not hold, and the worst one in a few words. The score is the share of \
claims that the context supports; it is settled."""

_SHOWN = ("P1: The museum opens at ten and is closed on Mondays.", "P2: Entry costs five euros. Children pay nothing.")
# Text, label, reason, passages.
_WORKED = (
    ("The museum opens at ten.", "yes", "P1 says so.", (1,)),
    ("Children pay two euros.", "no", "P2 says that they pay nothing.", (2,)),
    ("The museum has a café.", "unsure", "No passage mentions a café.", ()),
    ("A child gets in for free.", "yes", "It follows from P2.", (2,)),
    ("On Mondays it is open until noon.", "no", "P1 says that it is closed then.", (1,)),
    ("Shall we go there?", "none", "It is a question.", ()),
)
_EXAMPLES = Examples(
    tuple(Example(text, {"verdict": label}, why, cited) for text, label, why, cited in _WORKED), _SHOWN
)

_VERDICTS = ("yes", "no", "unsure")


def _assessed(verdicts: Sequence[Verdict]) -> FaithfulnessAnalysis:
    return FaithfulnessAnalysis.model_validate(
        {
            "verdicts": [
                {
                    "verdict": verdict.labels["verdict"],
                    **quoting(verdict, "claim"),
                    "passages": [] if verdict.labels["verdict"] == "unsure" else list(verdict.cited),
                }
                for verdict in verdicts
            ]
        }
    )


def _value(verdicts: Sequence[Verdict], _: Options) -> float | None:
    """Supported claims by claims; a text without claims has no score."""
    supported = counted(verdict for verdict in verdicts if verdict.labels["verdict"] == "yes")
    return supported / counted(verdicts) if verdicts else None


SCORER = Scorer(
    id="faithfulness",
    version="1",
    description=(
        "The share of the text's claims that the context supports. What the context contradicts or does not mention "
        "is not supported, even where it is true."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output", "context"),
    options=Options,
    bands=five_bands(
        "not supported by the context",
        "hardly supported",
        "partly supported",
        "mostly supported",
        "fully supported by the context",
    ),
    step_schemas={
        "preprocessStepResult": Claims.model_json_schema(mode="serialization"),
        "analyzeStepResult": FaithfulnessAnalysis.model_json_schema(mode="serialization"),
    },
    inquiries=(
        checked_against(
            CONTEXT,
            _VERDICTS,
            claims=_ANALYSIS,
            segments=_LABELLING,
            examples=_EXAMPLES,
        ),
    ),
    selected=found_claims,
    assessed=_assessed,
    value=_value,
    weight=lambda verdict: {"yes": 0.0, "unsure": 0.5, "no": 1.0}[verdict.labels["verdict"]],
    describe=lambda verdict: {"no": "contradicted", "unsure": "not found in the context"}[verdict.labels["verdict"]],
    explanation=_EXPLANATION,
    nothing_found={
        "en": "The context supports every claim of this text.",
        "fr": "Le contexte confirme toutes les affirmations de ce texte.",
        "ko": "이 글의 모든 주장은 제공된 문맥으로 뒷받침됩니다.",
        "ja": "このテキストの主張はすべてコンテキストによって裏付けられています。",
        "de": "Der Kontext stützt jede Aussage dieses Textes.",
        "es": "El contexto respalda todas las afirmaciones de este texto.",
        "pt": "O contexto sustenta todas as afirmações deste texto.",
        "zh": "这段文本中的所有陈述都有上下文支持。",
    },
    nothing_to_score={
        "en": "This text makes no claim that could be checked.",
        "fr": "Ce texte ne contient aucune affirmation vérifiable.",
        "ko": "이 글에는 확인할 수 있는 주장이 없습니다.",
        "ja": "このテキストには検証できる主張がありません。",
        "de": "Dieser Text enthält keine Aussage, die sich prüfen ließe.",
        "es": "Este texto no contiene ninguna afirmación que se pueda comprobar.",
        "pt": "Este texto não contém nenhuma afirmação que possa ser verificada.",
        "zh": "这段文本中没有可以核实的陈述。",
    },
    counts_shares=True,
)
