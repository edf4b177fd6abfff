"""Callers' regular expressions, in time linear to the text: RE2 has no backtracking, and a limit on memory."""

from typing import Any, Final

import re2

from app.domain.run import Span

MAX_MEMORY: Final = 1 << 20
"""Bytes that one pattern may take; larger ones are refused."""


class WrongPattern(ValueError):
    """Not a regular expression of RE2's syntax, or too large a one."""


def compiled(pattern: str, *, ignore_case: bool = False) -> Any:
    """Return the pattern ready for `search`; raises WrongPattern."""
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        raise WrongPattern from error


def first_match(pattern: str, text: str, *, ignore_case: bool) -> Span | None:
    """Return where pattern first matches in text; None when it does not. Raises WrongPattern."""
    match = compiled(pattern, ignore_case=ignore_case).search(text)
    return None if match is None else Span(start=match.start(), end=match.end())
