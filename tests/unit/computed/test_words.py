from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.computed import words
from app.computed.stop_words import LANGUAGES, stop_words_of
from app.computed.words import bare, content_words, folded, main_language, stems_of, tokens_of, words_of
from app.judge.language import NAMES


@given(st.text())
def test_tokens_are_the_text_without_whitespace(text: str) -> None:
    def solid(piece: str) -> str:
        return "".join(piece.split())

    assert solid("".join(tokens_of(text))) == solid(text)


@given(st.text(alphabet="ab \n，会。😀", min_size=1), st.integers(1, 5))
def test_long_texts_are_cut_without_loss(text: str, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "_CHUNK", chunk)
        assert "".join(tokens_of(text)) == "".join(text.split())


def test_long_texts_are_cut_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "one two, three four (five) six seven"
    whole = list(tokens_of(text))
    monkeypatch.setattr(words, "_CHUNK", 6)
    assert list(tokens_of(text)) == whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't pay 12.5%!", ["Don't", "pay", "12.5"]),
        ("我们明天去北京", ["我们", "明天", "去", "北京"]),
        ("会議を東京で", ["会議", "を", "東京", "で"]),
        ("회의를 합니다.", ["회의를", "합니다"]),
        ("ฉันรักประเทศไทย", ["ฉัน", "รัก", "ประเทศไทย"]),
        ("😀 𐀀 a", ["𐀀", "a"]),
    ],
)
def test_words_of_many_languages(text: str, expected: list[str]) -> None:
    assert list(words_of(text)) == expected


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("l'eau", "eau"),
        ("qu’il", "il"),
        ("john's", "john"),
        ("회의에서는", "회의"),
        ("책은", "책은"),
        ("도서관", "도서관"),
        ("don't", "don't"),
    ],
)
def test_what_is_written_together(word: str, expected: str) -> None:
    assert bare(word) == expected


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is it?", "en"),
        ("Où est-ce ?", "fr"),
        ("Was ist das?", "de"),
        ("¿Qué es esto?", "es"),
        ("O que é isto?", "pt"),
        ("这是什么？", "zh"),
        ("これは何ですか？", "ja"),
        ("이것은 무엇입니까?", "ko"),
        ("", "en"),
    ],
)
def test_languages_of_short_questions(text: str, language: str) -> None:
    assert main_language(text) == language


def test_content() -> None:
    assert list(content_words("What does the Harbour's ferry cost?")) == ["harbour", "ferry", "cost"]
    assert list(content_words("図書館はどこにありますか？")) == ["図書館"]


def test_stems_where_there_is_a_stemmer() -> None:
    assert list(stems_of(["ferries", "ferry"], "en")) == ["ferri", "ferri"]
    assert list(stems_of(["会議"], "ja")) == ["会議"]


def test_stop_words_are_there_for_every_language_and_folded() -> None:
    assert set(LANGUAGES) == NAMES.keys()
    assert stop_words_of("tlh") == frozenset()
    for language in LANGUAGES:
        assert all(folded(word) == word for word in stop_words_of(language))


def test_stop_words_say_nothing() -> None:
    """Words of common questions that published lists take for stop words."""
    for one, other in pairwise(["home", "system", "work", "information", "page", "help"]):
        assert list(content_words(f"the {one} of the {other}")) == [one, other]
