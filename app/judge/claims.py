"""Claims: the statements of fact in a text, which several scorers judge and one call finds for all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.domain.model import Model
from app.domain.request import RunRequest, Strategy
from app.domain.run import Span
from app.judge.exhibit import Exhibit
from app.judge.scorer import Assessment, Examples, Extraction, Inquiry, View, as_verdict, by_every_strategy
from app.judge.segment import Segment
from app.judge.subject import Subject, output_segments

_LONGEST_QUESTION = 2_000  # code points: a longer input is a document, and shown only where it is compared with

CLAIMS = Extraction(
    name="claims",
    version="1",
    key="claims",
    system="""\
You split a text into claims, so that each can be checked alone.
Claim: one fact that the text states, as one short sentence in the language of the text. Put names in the place of \
pronouns; where the text only answers a question, make it a full sentence. Add nothing and leave no fact out. Keep \
numbers, dates, negations and hedges (may, about, probably). Claim what the text says, even where it is wrong. Two \
facts in one segment make two claims.
No claim: an opinion, a matter of taste, a question, an instruction, a greeting, a heading, a remark about the text.""",
    view=View(question_limit=_LONGEST_QUESTION),
)

NO_FACT = "states no fact, as an opinion, a question, an instruction, a greeting or a heading"
"""What leaves a segment out where strategies of one call check segments and not claims."""

BY_PASSAGES = """\
Go by the passages alone and not by what you know. Names, numbers, dates, amounts and negations must agree; other \
words for the same are fine. Passages may support a claim together."""
"""By what the passages of a context support a claim."""

NO_CLAIM_IN_REFERENCE = {
    "en": "The reference answer makes no claim that could be looked for.",
    "fr": "La réponse de référence ne contient aucune affirmation à rechercher.",
    "ko": "기준 답변에는 찾아볼 수 있는 주장이 없습니다.",
    "ja": "参照回答には照合できる主張がありません。",
    "de": "Die Referenzantwort enthält keine Aussage, nach der sich suchen ließe.",
    "es": "La respuesta de referencia no contiene ninguna afirmación que se pueda buscar.",
    "pt": "A resposta de referência não contém nenhuma afirmação que possa ser procurada.",
    "zh": "参考答案中没有可以对照的陈述。",
}


class Claim(Model):
    """A claim in the judge's words, and where the segment stands that makes it."""

    claim: str
    span: Span


class Claims(Model):
    """What preprocess finds."""

    claims: list[str]
    items: list[Claim]


def found_claims(units: Sequence[Segment]) -> Claims:
    """Return claims as a step result."""
    items = [Claim(claim=unit.text, span=Span(start=unit.start, end=unit.end)) for unit in units]
    return Claims(claims=[item.claim for item in items], items=items)


def checked_against(
    exhibit: Exhibit,
    labels: tuple[str, ...],
    *,
    claims: str,
    segments: str,
    read: Callable[[Mapping[str, str]], Mapping[str, str] | None] = as_verdict,
    cites: bool = True,
    examples: Examples | None = None,
    subject: Callable[[RunRequest, Any], Subject] = output_segments,
    essential: bool = False,
) -> Inquiry:
    """Return the inquiry that checks the claims of a text against an exhibit, which may be shown page by page.

    Strategies of one call check its segments, which may be "none" beside these labels: they state nothing. `claims` and
    `segments` are the definitions for either.
    """
    of_segments = Assessment(
        fields={"verdict": (*labels, "none")},
        system=segments,
        reasons=True,
        read=read,
        view=View(exhibits=(exhibit,), piecewise=True),
        cites=exhibit if cites else None,
        examples=examples,
    )
    of_claims = replace(
        of_segments,
        fields={"verdict": labels},
        system=claims,
        view=View(neighbours=False, question_limit=0, exhibits=(exhibit,), piecewise=True),
        units="claims",
        examples=examples and examples.without("none"),
    )
    return Inquiry(
        preprocess=CLAIMS,
        assessments={**by_every_strategy(of_segments), Strategy.THREE_STEP: of_claims},
        subject=subject,
        essential=essential,
    )
