import pytest

from app.judge.language import NAMES, fixed_sentence, language_of, told
from tests.unit.judge.runs import SCORERS

TEXTS = {
    "en": "The nurses were kind and the weather was fine.",
    "fr": "Les infirmières étaient gentilles et il faisait beau.",
    "ko": "간호사들은 친절했고 날씨도 좋았습니다.",
    "ja": "看護師は親切で、天気もよかったです。",
    "de": "Die Pfleger waren freundlich und das Wetter war schön.",
    "es": "Las enfermeras fueron amables y hacía buen tiempo.",
    "pt": "As enfermeiras foram gentis e o tempo estava bom.",
    "zh": "护士们很和气，天气也很好。",
}
SENTENCES = {"en": "Nothing.", "fr": "Rien."}


@pytest.mark.parametrize("code", TEXTS)
def test_languages_are_told_apart(code: str) -> None:
    assert language_of(TEXTS[code]) == code


@pytest.mark.parametrize("text", ["", "12345", "😀", "привет"])
def test_english_when_nothing_tells(text: str) -> None:
    assert language_of(text) == "en"


@pytest.mark.parametrize(
    ("tag", "text", "sentence"),
    [
        (None, TEXTS["fr"], "Rien."),
        (None, TEXTS["ko"], "Nothing."),
        ("fr", TEXTS["en"], "Rien."),
        ("FR-ca", TEXTS["en"], "Rien."),
        ("uz", TEXTS["fr"], "Nothing."),
    ],
)
def test_a_fixed_sentence_is_in_the_language_asked_or_of_the_text(tag: str | None, text: str, sentence: str) -> None:
    assert fixed_sentence(SENTENCES, tag, text) == sentence


def test_the_judge_is_told_a_language_by_name_and_tag() -> None:
    assert told(None, "the numbered lines") == "the language of the numbered lines"
    assert told("pt-BR", "the numbered lines") == "Portuguese (pt-BR)"
    assert told("uz", "the numbered lines") == "the language with the BCP 47 tag uz"


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS.keys())
def test_scorers_have_their_sentence_in_all_languages(scorer) -> None:
    assert scorer.nothing_found.keys() == NAMES.keys()
    assert len(set(scorer.nothing_found.values())) == len(NAMES)


def test_halves_of_surrogate_pairs_do_not_keep_a_language_from_being_found() -> None:
    assert language_of("\ud800") == "en"
    assert language_of(TEXTS["fr"] + "\udc00") == "fr"
