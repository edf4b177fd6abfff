"""Completeness: which share of what the input names comes up in the output (higher is better)."""

from app.computed.scorer import ComputedScorer, Inputs, Result
from app.computed.terms import TermCoverage, term_result
from app.computed.words import content_words, folded, is_unspaced, main_language, stems_of
from app.domain.request import Options
from app.domain.run import Direction
from app.judge.scorer import Band


def _compute(inputs: Inputs, _: Options) -> Result:
    question = inputs.input or ""
    language = main_language(question)
    terms = list(dict.fromkeys(content_words(question)))
    output = folded(inputs.output)
    answered = set(stems_of(content_words(output), language))
    found = (
        stem in answered or (is_unspaced(term) and term in output)
        for term, stem in zip(terms, stems_of(terms, language), strict=True)
    )
    return term_result(terms, found)


SCORER = ComputedScorer(
    id="completeness",
    version="1",
    description=(
        "Which share of the input's words that say something (no stop words) come up in the output, in whatever form "
        "of the word (in English, French, German, Spanish and Portuguese). Without such words there is no score."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output", "input"),
    options=Options,
    bands=(
        Band("nothing comes up", 0.0, 0.0),
        Band("little comes up", 0.1, 0.3),
        Band("partly complete", 0.4, 0.7),
        Band("mostly complete", 0.8, 0.99),
        Band("complete", 1.0, 1.0),
    ),
    step_schemas={"analyzeStepResult": TermCoverage.model_json_schema(mode="serialization")},
    compute=_compute,
    reasons={
        "none": {
            "en": "The input names nothing that could come up.",
            "fr": "L’entrée ne nomme rien qui puisse être repris.",
            "ko": "입력에 다뤄질 만한 낱말이 없습니다.",
            "ja": "入力には取り上げられるべき語がありません。",
            "de": "Die Eingabe nennt nichts, was vorkommen könnte.",
            "es": "La entrada no nombra nada que pueda aparecer.",
            "pt": "A entrada não nomeia nada que possa aparecer.",
            "zh": "输入中没有可供涉及的词语。",
        },
        "found": {
            "en": "Words of the input that come up in the text: {found} of {terms}.",
            "fr": "Mots de l’entrée repris dans le texte : {found} sur {terms}.",
            "ko": "입력의 낱말 {terms}개 중 이 글에 나오는 것: {found}개.",
            "ja": "入力の{terms}語のうち、このテキストに出てくるもの：{found}語。",
            "de": "Wörter der Eingabe, die im Text vorkommen: {found} von {terms}.",
            "es": "Palabras de la entrada que aparecen en el texto: {found} de {terms}.",
            "pt": "Palavras da entrada que aparecem no texto: {found} de {terms}.",
            "zh": "输入的 {terms} 个词中，文本涉及了 {found} 个。",
        },
    },
)
