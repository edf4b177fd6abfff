"""Claims: the statements of fact in a text, which several scorers judge and one call finds for all of them."""

from collections.abc import Sequence

from app.domain.model import Model
from app.domain.run import Span
from app.judge.scorer import Extraction, View
from app.judge.segment import Segment

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
