"""How many tokens a text takes at most, without any model's tokenizer."""

import re
from functools import lru_cache

_CONSONANTS, _VOWELS = "[b-df-hj-np-tv-xz]", "[aeiouy]{1,2}"
_PLAIN_WORD = re.compile(
    r"(?<= )(?=[A-Za-z][a-z]{1,19}(?![A-Za-z0-9+/=_]))"
    rf"[A-Z]?{_CONSONANTS}{{0,2}}{_VOWELS}(?:{_CONSONANTS}{{1,2}}{_VOWELS})*{_CONSONANTS}{{0,2}}(?![a-z])"
)


def token_bound(text: str) -> int:
    """Return a number of tokens that no usual tokenizer exceeds for a usual text, whatever its script.

    A token stands for at least one byte, so the UTF-8 length is a bound; Chinese, Japanese, Korean, emoji, digits and
    base64 are counted so. Only words in lower-case Latin letters that could be spoken get credit, half of their
    letters. Of this, the tokenizers of seven families of models (three generations of GPT, Claude, two of Llama,
    Mistral) take 0.3 to 0.6 in usual prose and up to 1.0 in Chinese, Japanese and Korean. The most seen is 1.07,
    for words of random letters in an order that could be spoken.
    """
    credit = sum(len(word) // 2 for word in _PLAIN_WORD.findall(text))
    return len(text.encode("utf-8", "replace")) - credit


@lru_cache(maxsize=256)
def fixed_token_bound(text: str) -> int:
    """Return a bound for a text that comes again and again: instructions, never scored text.

    Instructions in ASCII are prose, of which the same tokenizers take no more than 0.6 a byte.
    """
    return len(text) * 3 // 5 if text.isascii() else token_bound(text)
