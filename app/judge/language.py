"""Languages: what the judge is told to write in, and which fixed sentence fits a text."""

from collections.abc import Mapping
from functools import cache

from lingua import Language, LanguageDetector, LanguageDetectorBuilder

NAMES: dict[str, str] = {
    "en": "English",
    "fr": "French",
    "ko": "Korean",
    "ja": "Japanese",
    "de": "German",
    "es": "Spanish",
    "pt": "Portuguese",
    "zh": "Chinese",
}
"""The languages that fixed sentences exist in, by primary subtag."""

_SAMPLE = 1_000
_CODES = {
    Language.ENGLISH: "en",
    Language.FRENCH: "fr",
    Language.KOREAN: "ko",
    Language.JAPANESE: "ja",
    Language.GERMAN: "de",
    Language.SPANISH: "es",
    Language.PORTUGUESE: "pt",
    Language.CHINESE: "zh",
}


def told(tag: str | None, lines: str) -> str:
    """Return how the judge is told the language of a BCP 47 tag; without a tag, the language of these lines."""
    if tag is None:
        return f"the language of {lines}"
    name = NAMES.get(_primary(tag))
    return f"{name} ({tag})" if name else f"the language with the BCP 47 tag {tag}"


def fixed_sentence(sentences: Mapping[str, str], tag: str | None, text: str) -> str:
    """Return the sentence in the language of tag, or without a tag of text; in English where there is none."""
    code = _primary(tag) if tag is not None else language_of(text)
    return sentences.get(code, sentences["en"])


def language_of(text: str) -> str:
    """Return which of NAMES the text's beginning is most likely written in; English when nothing tells."""
    sample = text[:_SAMPLE].encode("utf-8", "replace").decode()
    language = _detector().detect_language_of(sample)
    return _CODES[language] if language is not None else "en"


def _primary(tag: str) -> str:
    return tag.partition("-")[0].lower()


@cache
def _detector() -> LanguageDetector:
    # The models are read when a text first needs them: 15 MB for these languages, in milliseconds.
    return LanguageDetectorBuilder.from_languages(*_CODES).with_low_accuracy_mode().build()
