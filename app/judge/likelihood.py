"""How likely each label is, by the probabilities of the tokens in which the judge wrote one."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import fsum, prod
from typing import NamedTuple

from app.judge.labels import label_forms, plain_form
from app.ports import Token

_DIGITS = 6
_BEFORE = " \t\r\n\"'`“:"
_NO_PART_OF_LABELS = re.compile(r"[^\w \t-]")

Probabilities = Mapping[str, float]
"""By label, in sum 1 save for rounding; labels without any share are left out."""


class Alignment:
    """A reply's text laid over the tokens it was written in, by offsets in UTF-8.

    What tokens hold around the text (reasoning that was cut out, chat tokens) does not matter; where the text does not
    stand in them as it is, nothing is told.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        written = b"".join(token.text for token in tokens)
        self._text = text
        self._tokens = tokens
        self._begins = written.rfind(text.encode("utf-8", "surrogatepass"))
        self._ends = list(accumulate(len(token.text) for token in tokens))

    def probabilities(self, at: int, chosen: str, labels: tuple[str, ...]) -> Probabilities | None:
        """Return how likely each of labels was in the place of the chosen one, which stands at text[at].

        None where the tokens do not tell.
        """
        if self._begins < 0:
            return None
        offset = self._begins + len(self._text[:at].encode("utf-8", "surrogatepass"))
        first = bisect_right(self._ends, offset)
        begun = offset - (self._ends[first - 1] if first else 0)
        path = [_from(self._tokens[first], begun), *self._tokens[first + 1 : first + 1 + _LONGEST_PATH]]
        return _along(path, chosen, labels)


_LONGEST_PATH = 40  # tokens of a label


def _from(token: Token, begun: int) -> Token:
    """Return the part of a token from which on it writes the label; others in its place may begin in the same way."""
    before = token.text[:begun]
    likeliest = tuple((text.removeprefix(before), probability) for text, probability in token.likeliest)
    return Token(token.text[begun:], token.probability, likeliest)


def _along(path: Sequence[Token], chosen: str, labels: tuple[str, ...]) -> Probabilities | None:
    """Follow the tokens of the chosen label until no other is possible, and give the others what branches off.

    What branches off towards one label is that label's, towards several it is shared evenly among them, towards all or
    none it tells nothing. A token that leaves the same labels possible as the chosen one (" yes", "Y") counts with it.
    """
    weights = dict.fromkeys(labels, 0.0)
    said, share, settled = b"", 1.0, None
    for token in path:
        here = _begun_by(said + token.text, labels)
        probability = token.probability
        for text, other in token.likeliest:
            there = _begun_by(said + text, labels)
            if text == token.text:
                continue
            if there.possible == here.possible:
                probability += other
            elif len(there.possible) < len(labels):
                for label in there.meant:
                    weights[label] += share * other / len(there.meant)
        share *= probability
        said += token.text
        if here.possible:
            settled = here.possible[0] if len(here.possible) == 1 else here.exact
        if len(here.possible) <= 1:
            break
    if settled != chosen:
        return None
    weights[settled] += share
    return _normalised(weights)


class _Begun(NamedTuple):
    """Which labels a text may become, and which one it is already."""

    possible: tuple[str, ...]
    exact: str | None

    @property
    def meant(self) -> tuple[str, ...]:
        """The labels that the text stands for when nothing more is known."""
        return self.possible if self.exact is None else (self.exact,)


@lru_cache(maxsize=4096)
def _begun_by(written: bytes, labels: tuple[str, ...]) -> _Begun:
    text = written.decode("utf-8", "replace").lstrip(_BEFORE)
    word = _NO_PART_OF_LABELS.split(text, maxsplit=1)[0]
    forms, plain = label_forms(labels), plain_form(word)
    exact = forms.get(plain)
    if len(word) < len(text):
        return _Begun((exact,) if exact else (), exact)
    return _Begun(tuple(dict.fromkeys(label for form, label in forms.items() if form.startswith(plain))), exact)


def foremost(distributions: Sequence[Probabilities | None], labels: Sequence[str]) -> Probabilities | None:
    """Return how likely each label is the foremost of several, one from each distribution; None where one is missing.

    The labels stand foremost first, and the several do not depend on one another.
    """
    known = [one for one in distributions if one is not None]
    if len(known) < len(distributions):
        return None
    if len(known) == 1:
        return known[0]
    none_before = [
        prod(fsum(one.get(label, 0.0) for label in labels[index:]) for one in known) for index in range(len(labels) + 1)
    ]
    return _normalised({label: none_before[index] - none_before[index + 1] for index, label in enumerate(labels)})


def mean(distributions: Sequence[Probabilities | None]) -> Probabilities | None:
    """Return the mean of several distributions over the same labels; None where one is missing."""
    known = [one for one in distributions if one is not None]
    if len(known) < len(distributions):
        return None
    labels = dict.fromkeys(label for one in known for label in one)
    return _normalised({label: fsum(one.get(label, 0.0) for one in known) for label in labels})


def _normalised(weights: Mapping[str, float]) -> Probabilities | None:
    total = fsum(weights.values())
    if not total > 0.0:
        return None
    shares = {label: round(weight / total, _DIGITS) for label, weight in weights.items()}
    return {label: share for label, share in shares.items() if share > 0.0}
