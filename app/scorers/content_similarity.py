"""Content similarity: how many words the output has in common with a reference, in any order (higher is better)."""

from collections import Counter
from typing import Annotated

from pydantic import Field

from app.computed.against import ComparisonOptions, needs_of, reference_of
from app.computed.scorer import ComputedScorer, Inputs, Result
from app.computed.words import content_words, folded, main_language, stems_of, tokens_of
from app.domain.model import Model
from app.domain.run import Direction
from app.judge.scorer import Band

Count = Annotated[int, Field(ge=0)]


class Similarity(Model):
    """The words that say something, repeated ones each time: how many there are, and how many both texts share."""

    output_words: Count
    reference_words: Count
    shared_words: Count


def _compute(inputs: Inputs, options: ComparisonOptions) -> Result:
    texts = (inputs.output, reference_of(inputs, options))
    output, reference = map(_content, texts)
    if not output or not reference:
        output, reference = (Counter(tokens_of(folded(text))) for text in texts)
    shared, total = (output & reference).total(), output.total() + reference.total()
    analysis = Similarity(output_words=output.total(), reference_words=reference.total(), shared_words=shared)
    facts = {"shared": shared, "output": output.total(), "reference": reference.total()}
    return Result(2 * shared / total, analysis, total, "shared", facts)


def _content(text: str) -> Counter[str]:
    return Counter(stems_of(content_words(text), main_language(text)))


SCORER = ComputedScorer(
    id="content-similarity",
    version="1",
    description=(
        "How many words the output has in common with a reference, in any order: twice the shared words over the words "
        "of both. Case, forms of a word (in English, French, German, Spanish and Portuguese), stop words and "
        "punctuation do not count. The reference is groundTruth, or with the option against the input."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output", "groundTruth"),
    needs_under=needs_of,
    options=ComparisonOptions,
    bands=(
        Band("nothing in common", 0.0, 0.0),
        Band("little in common", 0.1, 0.3),
        Band("partly the same", 0.4, 0.7),
        Band("mostly the same", 0.8, 0.99),
        Band("the same words", 1.0, 1.0),
    ),
    step_schemas={"analyzeStepResult": Similarity.model_json_schema(mode="serialization")},
    compute=_compute,
    reasons={
        "shared": {
            "en": "Words in common: {shared}; the text has {output}, the reference {reference}.",
            "fr": "Mots en commun : {shared} ; le texte en a {output}, la référence {reference}.",
            "ko": "공통된 단어: {shared}개. 이 글에는 {output}개, 기준 글에는 {reference}개가 있습니다.",
            "ja": "共通する語：{shared}。このテキストは{output}語、参照テキストは{reference}語です。",
            "de": "Gemeinsame Wörter: {shared}; der Text hat {output}, die Vorlage {reference}.",
            "es": "Palabras en común: {shared}; el texto tiene {output}, la referencia {reference}.",
            "pt": "Palavras em comum: {shared}; o texto tem {output}, a referência {reference}.",
            "zh": "共有的词：{shared} 个；文本有 {output} 个，参考文本有 {reference} 个。",
        },
    },
)
