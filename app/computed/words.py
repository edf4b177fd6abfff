"""Words of any language: cut by ICU, compared without regard to case, form and width, told apart from stop words.

ICU knows the words of Chinese, Japanese, Thai, Lao, Khmer and Burmese by dictionary; Korean is cut at spaces, and its
particles are taken off here.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

import Stemmer
from icu4py.breakers import WordBreaker

from app.computed.stop_words import LANGUAGES, stop_words_of
from app.judge.language import language_of

_SAMPLE: Final = 1_000
_CHUNK: Final = 10_000  # code points at once, so that no call into ICU holds up other threads for long
_PLACE_TO_CUT: Final = re.compile(r"[\s\W](?=\w)")
UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Of a character class: the letters of scripts that are written without spaces between words."""
HANGUL: Final = "\uac00-\ud7a3"
"""Of a character class: Korean syllables."""
_UNSPACED_LETTER: Final = re.compile(f"[{UNSPACED}]")
_HIRAGANA: Final = re.compile("[\u3041-\u309f]+")
_STEMMERS: Final = {"en": "english", "fr": "french", "de": "german", "es": "spanish", "pt": "portuguese"}
_ATTACHED: Final = re.compile(
    r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)['’](?=\w)"  # what French elides before the word
    r"|['’]s$"
    f"|(?<=[{HANGUL}]{{2}})"
    "(?:에서는|에게서|으로는|에서|에게|으로|까지|부터|처럼|보다|한테|께서|이나|이라|라는|하고|은|는|이|가|을|를|에|의|와|과|도|로|만|나)$"
)


def folded(text: str) -> str:
    """Return text in the form in which words are compared: compatibility forms and case are told apart no longer."""
    pieces = (unicodedata.normalize("NFKC", text[begin:end]).casefold() for begin, end in _chunks(text))
    return "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)


def tokens_of(text: str) -> Iterator[str]:
    """Yield words, numbers, punctuation and symbols of text in order, everything but whitespace."""
    for begin, end in _chunks(text):
        yield from (token for token in WordBreaker(text[begin:end], "en") if not token.isspace())


def words_of(text: str) -> Iterator[str]:
    """Yield the words and numbers of text."""
    return (token for token in tokens_of(text) if any(map(str.isalnum, token)))


def bare(word: str) -> str:
    """Return a folded word without what is written together with it: particles, elided articles, the genitive's s."""
    return _ATTACHED.sub("", word)


def main_language(text: str) -> str:
    """Return the language of text among those that have stop words, by its beginning.

    Stop words tell more than a detector where a text is short: the language is the detector's unless another one has
    more of them.
    """
    detected = language_of(text)
    words = list(words_of(folded(text[:_SAMPLE])))
    counts = {language: sum(word in stop_words_of(language) for word in words) for language in LANGUAGES}
    best = max(LANGUAGES, key=counts.__getitem__)
    return best if counts[best] > counts[detected] else detected


def content_words(text: str) -> Iterator[str]:
    """Yield the words of text, folded and bare, that are no stop words of its language.

    In Japanese what is written in hiragana alone counts as a stop word: particles, endings, auxiliary verbs.
    """
    stop_words = stop_words_of(main_language(text))
    for word in words_of(folded(text)):
        bare_word = bare(word)
        if word not in stop_words and bare_word not in stop_words and not _HIRAGANA.fullmatch(word):
            yield bare_word


def stems_of(words: Iterable[str], language: str) -> Iterator[str]:
    """Yield the stems of folded words; the words themselves in languages without inflection or without a stemmer."""
    name = _STEMMERS.get(language)
    if name is None:
        yield from words
        return
    # One of its own, since stemmers are not for several threads; without its cache, which would be of no use then.
    stemmer = Stemmer.Stemmer(name, 0)
    yield from map(stemmer.stemWord, words)


def is_unspaced(word: str) -> bool:
    """Whether word has letters of a script without spaces, so that ICU may find it as part of another word."""
    return _UNSPACED_LETTER.search(word) is not None


def _chunks(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    while len(text) - begin > 2 * _CHUNK:
        # A text without any place to cut is cut anyway, as is none that people write.
        place = _PLACE_TO_CUT.search(text, begin + _CHUNK, begin + 2 * _CHUNK)
        end = begin + 2 * _CHUNK if place is None else place.end()
        yield begin, end
        begin = end
    yield begin, len(text)
