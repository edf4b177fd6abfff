"""Keyword coverage: which share of the keywords stand in the output (higher is better)."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from app.computed.scorer import ComputedScorer, Inputs, Result
from app.computed.terms import TermCoverage, term_result
from app.computed.words import HANGUL, UNSPACED, bare, content_words, folded, is_unspaced, words_of
from app.domain.model import refuse_blank, refuse_nul
from app.domain.request import Options
from app.domain.run import Direction
from app.judge.scorer import Band

Keyword = Annotated[str, StringConstraints(max_length=200), AfterValidator(refuse_nul), AfterValidator(refuse_blank)]


class KeywordOptions(Options):
    """Options of keyword-coverage beside the common ones."""

    keywords: Annotated[list[Keyword], Field(min_length=1, max_length=200)] | None = Field(
        None, description="Words or phrases to look for; default: the input's words that say something"
    )


def _needs_of(options: KeywordOptions) -> tuple[str, ...]:
    return ("output", "input") if options.keywords is None else ("output",)


def _compute(inputs: Inputs, options: KeywordOptions) -> Result:
    output = _plain(inputs.output)
    if options.keywords is not None:
        keywords = list(dict.fromkeys(map(_plain, options.keywords)))
        return term_result(keywords, (_stands_in(keyword, output) for keyword in keywords))
    keywords = list(dict.fromkeys(content_words(inputs.input or "")))
    words = {form for word in words_of(output) for form in (word, bare(word))}
    found = (keyword in words or (is_unspaced(keyword) and keyword in output) for keyword in keywords)
    return term_result(keywords, found)


def _plain(text: str) -> str:
    return " ".join(folded(text).split())


_SPACED = f"[^\\W{UNSPACED}]"
_SPACED_BUT_KOREAN = f"[^\\W{UNSPACED}{HANGUL}]"


def _stands_in(keyword: str, output: str) -> bool:
    """Whether keyword stands in output as words of its own.

    That means nothing in scripts without spaces, and in Korean that a word begins with it: particles may follow.
    """
    if keyword not in output:
        return False
    before = f"(?<!{_SPACED})" if re.match(_SPACED, keyword) else ""
    after = f"(?!{_SPACED_BUT_KOREAN})" if re.search(f"{_SPACED_BUT_KOREAN}$", keyword) else ""
    return re.search(before + re.escape(keyword) + after, output) is not None


SCORER = ComputedScorer(
    id="keyword-coverage",
    version="1",
    description=(
        "Which share of the keywords stand in the output as they are, but for case and width: those of the option "
        "keywords, or without it the input's words that say something (no stop words). Without any there is no score."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output", "input"),
    needs_under=_needs_of,
    options=KeywordOptions,
    bands=(
        Band("none covered", 0.0, 0.0),
        Band("few covered", 0.1, 0.3),
        Band("partly covered", 0.4, 0.7),
        Band("mostly covered", 0.8, 0.99),
        Band("all covered", 1.0, 1.0),
    ),
    step_schemas={"analyzeStepResult": TermCoverage.model_json_schema(mode="serialization")},
    compute=_compute,
    reasons={
        "none": {
            "en": "The input has no keywords.",
            "fr": "L’entrée n’a pas de mots-clés.",
            "ko": "입력에 핵심어가 없습니다.",
            "ja": "入力にキーワードがありません。",
            "de": "Die Eingabe hat keine Schlüsselwörter.",
            "es": "La entrada no tiene palabras clave.",
            "pt": "A entrada não tem palavras-chave.",
            "zh": "输入中没有关键词。",
        },
        "found": {
            "en": "Keywords found in the text: {found} of {terms}.",
            "fr": "Mots-clés trouvés dans le texte : {found} sur {terms}.",
            "ko": "핵심어 {terms}개 중 이 글에서 찾은 것: {found}개.",
            "ja": "{terms}個のキーワードのうち、このテキストで見つかったもの：{found}個。",
            "de": "Im Text gefundene Schlüsselwörter: {found} von {terms}.",
            "es": "Palabras clave encontradas en el texto: {found} de {terms}.",
            "pt": "Palavras-chave encontradas no texto: {found} de {terms}.",
            "zh": "{terms} 个关键词中，文本出现了 {found} 个。",
        },
    },
)
