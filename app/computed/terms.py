"""Which terms of one text are found in another."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pydantic import Field

from app.computed.scorer import Result
from app.domain.model import Model

SHOWN: Final = 100

Count = Annotated[int, Field(ge=0)]


class TermCoverage(Model):
    """How many terms there are and how many were found; `matched` and `missing` show the first hundred of each."""

    terms: Count
    found: Count
    matched: list[str]
    missing: list[str]


def term_result(terms: Sequence[str], found: Iterable[bool]) -> Result:
    """Return the share of terms that were found; without terms there is nothing to score."""
    judged = list(zip(terms, found, strict=True))
    matched = [term for term, is_found in judged if is_found]
    missing = [term for term, is_found in judged if not is_found]
    analysis = TermCoverage(terms=len(terms), found=len(matched), matched=matched[:SHOWN], missing=missing[:SHOWN])
    if not terms:
        return Result(None, analysis, 0, "none")
    facts = {"found": len(matched), "terms": len(terms)}
    return Result(len(matched) / len(terms), analysis, len(terms), "found", facts)
