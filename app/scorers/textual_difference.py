"""Textual difference: how much of a reference's wording the output keeps, word by word (higher is better)."""

import unicodedata
from typing import Annotated

from pydantic import Field

from app.computed.against import ComparisonOptions, needs_of, reference_of
from app.computed.alignment import aligned
from app.computed.scorer import ComputedScorer, Inputs, Result
from app.computed.words import tokens_of
from app.domain.model import Model
from app.domain.run import Direction
from app.judge.scorer import Band

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class DifferenceOptions(ComparisonOptions):
    """Options of textual-difference beside the common ones."""

    ignore_case: bool = Field(False, description="Whether words that differ in case alone are the same")


class Difference(Model):
    """What was changed to make the output of the reference; words count with punctuation marks and symbols."""

    similarity_ratio: Share = Field(description="1 - words changed / words of the longer text")
    changes: Count = Field(description="Places in which something was replaced, inserted or deleted")
    words_replaced: Count
    words_inserted: Count
    words_deleted: Count
    length_difference: Share = Field(description="Difference of the lengths in code points / the longer one")
    exact: bool = Field(description="False for texts so long that passages were aligned before words")


def _compute(inputs: Inputs, options: DifferenceOptions) -> Result:
    texts = [unicodedata.normalize("NFC", text) for text in (reference_of(inputs, options), inputs.output)]
    if options.ignore_case:
        texts = [unicodedata.normalize("NFC", text.casefold()) for text in texts]
    alignment = aligned(*map(tokens_of, texts))
    changes = alignment.changes
    longer = max(alignment.before, alignment.after)
    # Passages that moved far are changed twice, which may come to more than replacing everything.
    changed = min(sum(map(max, changes)), longer)
    lengths = [len(text) for text in texts]
    analysis = Difference(
        similarity_ratio=1 - changed / longer,
        changes=len(changes),
        words_replaced=sum(min(change) for change in changes),
        words_inserted=sum(max(change.after - change.before, 0) for change in changes),
        words_deleted=sum(max(change.before - change.after, 0) for change in changes),
        length_difference=(max(lengths) - min(lengths)) / max(lengths),
        exact=alignment.exact,
    )
    facts = {"changes": len(changes), "changed": changed, "words": longer}
    return Result(analysis.similarity_ratio, analysis, longer, "changed" if changes else "equal", facts)


SCORER = ComputedScorer(
    id="textual-difference",
    version="1",
    description=(
        "How much of a reference's wording the output keeps, in its order: words replaced, inserted and deleted, the "
        "number of changes and the difference in length. The reference is groundTruth, or with the option against the "
        "input."
    ),
    direction=Direction.HIGHER_IS_BETTER,
    needs=("output", "groundTruth"),
    needs_under=needs_of,
    options=DifferenceOptions,
    bands=(
        Band("entirely different", 0.0, 0.0),
        Band("mostly different", 0.1, 0.4),
        Band("partly changed", 0.5, 0.8),
        Band("slightly changed", 0.9, 0.99),
        Band("equal", 1.0, 1.0),
    ),
    step_schemas={"analyzeStepResult": Difference.model_json_schema(mode="serialization")},
    compute=_compute,
    reasons={
        "equal": {
            "en": "The text has the same words as the reference.",
            "fr": "Le texte a les mêmes mots que la référence.",
            "ko": "이 글은 기준 글과 단어가 같습니다.",
            "ja": "このテキストの語は参照テキストと同じです。",
            "de": "Der Text hat dieselben Wörter wie die Vorlage.",
            "es": "El texto tiene las mismas palabras que la referencia.",
            "pt": "O texto tem as mesmas palavras que a referência.",
            "zh": "这段文本与参考文本的词语相同。",
        },
        "changed": {
            "en": "Places that differ from the reference: {changes}; words changed: {changed} of {words}.",
            "fr": "Endroits qui diffèrent de la référence : {changes} ; mots changés : {changed} sur {words}.",
            "ko": "기준 글과 다른 곳: {changes}곳, 바뀐 단어: {words}개 중 {changed}개.",
            "ja": "参照テキストと異なる箇所：{changes}、変更された語：{words}語中{changed}語。",
            "de": "Stellen, die von der Vorlage abweichen: {changes}; geänderte Wörter: {changed} von {words}.",
            "es": "Lugares que difieren de la referencia: {changes}; palabras cambiadas: {changed} de {words}.",
            "pt": "Trechos que diferem da referência: {changes}; palavras alteradas: {changed} de {words}.",
            "zh": "与参考文本不同之处：{changes} 处；改动的词：{words} 个中有 {changed} 个。",
        },
    },
)
