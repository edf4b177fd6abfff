"""How many tokens a text takes at most, without any model's tokenizer."""

import re
from functools import lru_cache

_PLAIN_WORD = re.compile(r"(?<![A-Za-z0-9+/=_\-])[ ]?[A-Za-z][a-z]{1,19}(?![A-Za-z0-9+/=_])")


def token_bound(text: str) -> int:
    """Return a number of tokens that no usual tokenizer exceeds for text, whatever its script.

    A token stands for at least one byte, so the UTF-8 length is a bound; Chinese, Japanese, Korean, emoji, digits and
    base64 are counted so. Only plain words in lower-case Latin letters get credit, half of their letters. With a small
    tokenizer made for English, real counts are 0.3 to 0.4 of it in English and up to 1.0 in Korean; only words of
    random letters exceed it (1.15).
    """
    credit = sum(len(word) // 2 for word in _PLAIN_WORD.findall(text))
    return len(text.encode("utf-8", "replace")) - credit


@lru_cache(maxsize=256)
def fixed_token_bound(text: str) -> int:
    """Return token_bound of a text that comes again and again: instructions, never scored text."""
    return token_bound(text)
