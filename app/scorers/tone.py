"""Tone: how near the sentiment is to a reference's or, without one, how steady it stays (higher is better)."""

from collections.abc import Sequence
from functools import cache
from statistics import fmean, pvariance
from typing import Annotated, Final, Literal

from pydantic import Field
from vader import SentimentIntensityAnalyzer

from app.computed.scorer import ComputedScorer, Inputs, Result
from app.computed.stop_words import stop_words_of
from app.computed.words import folded, main_language, words_of
from app.domain.model import Model
from app.domain.request import LanguageTag, Options
from app.domain.run import Direction
from app.judge.scorer import Band
from app.judge.segment import segments_of

ENGLISH: Final = "en"
_SAMPLE: Final = 5_000
_KNOWN_SHARE: Final = 0.2

Sentiment = Annotated[float, Field(ge=-1, le=1)]


class ToneOptions(Options):
    """Options of tone beside the common ones."""

    text_language: LanguageTag | None = Field(
        None, description="BCP 47 tag of the texts' language; default: what they look like"
    )


class Tone(Model):
    """The sentiment from -1 (negative) to 1, the mean over sentences; null in languages without a lexicon."""

    compared_with: Literal["groundTruth", "itself"]
    sentences: Annotated[int, Field(ge=0)]
    sentiment: Sentiment | None
    reference_sentiment: Sentiment | None
    variance: Annotated[float, Field(ge=0, le=1)] | None


def _compute(inputs: Inputs, options: ToneOptions) -> Result:
    texts = [text for text in (inputs.output, inputs.ground_truth) if text and text.strip()]
    compared_with: Literal["groundTruth", "itself"] = "groundTruth" if len(texts) > 1 else "itself"
    if not all(_is_english(text, options) for text in texts):
        unknown = Tone(
            compared_with=compared_with, sentences=0, sentiment=None, reference_sentiment=None, variance=None
        )
        return Result(None, unknown, 0, "unknown_language")
    sentiments = [_sentiments(text) for text in texts]
    means = [_mean(of_text) for of_text in sentiments]
    items = sum(map(len, sentiments))
    if compared_with == "groundTruth":
        tone = Tone(
            compared_with=compared_with,
            sentences=len(sentiments[0]),
            sentiment=means[0],
            reference_sentiment=means[1],
            variance=None,
        )
        facts = {"sentiment": f"{means[0]:.2f}", "reference": f"{means[1]:.2f}"}
        return Result(max(0.0, 1 - abs(means[0] - means[1])), tone, items, "compared", facts)
    variance = min(pvariance(sentiments[0], means[0]), 1.0)
    tone = Tone(
        compared_with=compared_with, sentences=items, sentiment=means[0], reference_sentiment=None, variance=variance
    )
    return Result(1 - variance, tone, items, "steady", {"sentences": items, "variance": f"{variance:.2f}"})


def _sentiments(text: str) -> list[float]:
    polarity_of = _analyzer().polarity_scores
    return [polarity_of(segment.text)["compound"] for segment in segments_of(text)]


def _mean(sentiments: Sequence[float]) -> float:
    return min(max(fmean(sentiments), -1.0), 1.0)


def _is_english(text: str, options: ToneOptions) -> bool:
    """Whether the lexicon knows the text's language, as told or else by two signs that have to agree.

    The detector knows few languages and takes the others for one of them, so enough of the words must be English too.
    """
    if options.text_language is not None:
        return options.text_language.partition("-")[0].lower() == ENGLISH
    if main_language(text) != ENGLISH:
        return False
    known = [word in _english_words() for word in words_of(folded(text[:_SAMPLE]))]
    return sum(known) >= max(_KNOWN_SHARE * len(known), 1)


@cache
def _analyzer() -> SentimentIntensityAnalyzer:
    return SentimentIntensityAnalyzer()


@cache
def _english_words() -> frozenset[str]:
    return stop_words_of(ENGLISH) | frozenset(_analyzer().lexicon)


SCORER = ComputedScorer(
    id="tone",
    version="1",
    description=(
        "How near the sentiment of the output is to that of groundTruth, or without one how steady it stays from "
        "sentence to sentence, by the VADER lexicon. English only: other languages get no score."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output",),
    options=ToneOptions,
    bands=(
        Band("opposite tone", 0.0, 0.2),
        Band("different tone", 0.3, 0.6),
        Band("similar tone", 0.7, 0.8),
        Band("same tone", 0.9, 1.0),
    ),
    step_schemas={"analyzeStepResult": Tone.model_json_schema(mode="serialization")},
    compute=_compute,
    reasons={
        "compared": {
            "en": "The sentiment of the text is {sentiment}, that of the reference {reference} (from -1 to 1).",
            "fr": "Le sentiment du texte est de {sentiment}, celui de la référence de {reference} (de -1 à 1).",
            "ko": "이 글의 감정값은 {sentiment}, 기준 글은 {reference}입니다(-1에서 1까지).",
            "ja": "このテキストの感情値は{sentiment}、参照テキストは{reference}です（-1から1まで）。",
            "de": "Die Stimmung des Textes liegt bei {sentiment}, die der Vorlage bei {reference} (von -1 bis 1).",
            "es": "El sentimiento del texto es {sentiment} y el de la referencia {reference} (de -1 a 1).",
            "pt": "O sentimento do texto é {sentiment} e o da referência {reference} (de -1 a 1).",
            "zh": "文本的情感值为 {sentiment}，参考文本为 {reference}（从 -1 到 1）。",
        },
        "steady": {
            "en": "Over {sentences} sentences the sentiment varies by {variance} (variance, from 0 to 1).",
            "fr": "Sur {sentences} phrases, le sentiment varie de {variance} (variance, de 0 à 1).",
            "ko": "문장 {sentences}개에 걸친 감정값의 분산은 {variance}입니다(0에서 1까지).",
            "ja": "{sentences}文にわたる感情値の分散は{variance}です（0から1まで）。",
            "de": "Über {sentences} Sätze streut die Stimmung um {variance} (Varianz, von 0 bis 1).",
            "es": "En {sentences} oraciones el sentimiento varía {variance} (varianza, de 0 a 1).",
            "pt": "Em {sentences} frases o sentimento varia {variance} (variância, de 0 a 1).",
            "zh": "在 {sentences} 个句子中，情感值的方差为 {variance}（从 0 到 1）。",
        },
        "unknown_language": {
            "en": "There is no sentiment lexicon for the language of the texts; English is known.",
            "fr": "Il n’y a pas de lexique de sentiments pour la langue des textes ; l’anglais est connu.",
            "ko": "이 글의 언어에 대한 감정 사전이 없습니다. 영어만 지원합니다.",
            "ja": "テキストの言語に対応する感情辞書がありません。対応しているのは英語だけです。",
            "de": "Für die Sprache der Texte gibt es kein Stimmungslexikon; bekannt ist Englisch.",
            "es": "No hay un léxico de sentimientos para el idioma de los textos; se conoce el inglés.",
            "pt": "Não há léxico de sentimentos para o idioma dos textos; o inglês é conhecido.",
            "zh": "没有适用于该文本语言的情感词典；目前仅支持英语。",
        },
    },
)
