import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.scorers.content_similarity import SCORER
from tests.unit.scorers.computing import score

TEXTS = st.text(min_size=1, max_size=60).filter(str.strip)


def test_worked_example() -> None:
    """ferry, leave, nine, harbour and ferry, leave, ten: 2 of them twice over 4 + 3."""
    result = score(SCORER, "The ferry leaves at nine from the harbour.", truth="Ferries leave at ten!")
    assert result.value == pytest.approx(4 / 7)
    assert result.analysis.model_dump() == {"outputWords": 4, "referenceWords": 3, "sharedWords": 2}


def test_repeated_words_count_each_time() -> None:
    assert score(SCORER, "tea tea tea", truth="tea").value == pytest.approx(2 / 4)


@given(TEXTS)
def test_a_text_is_the_same_as_itself(text: str) -> None:
    assert score(SCORER, text, truth=text).value == 1.0


@given(TEXTS, TEXTS)
def test_it_does_not_matter_which_text_is_the_reference(one: str, other: str) -> None:
    assert score(SCORER, one, truth=other).value == score(SCORER, other, truth=one).value


@given(st.permutations(["harbour", "ferry", "nine", "tickets", "aboard"]))
def test_order_does_not_matter(words: list[str]) -> None:
    assert score(SCORER, " ".join(words), truth="Harbour ferry, nine tickets aboard.").value == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("我们明天去北京开会。", "今天的汤太咸了，我不喜欢。"),
        ("会議は東京で行われます。", "このスープは塩辛いです。"),
        ("회의는 서울에서 열립니다.", "이 국은 너무 짜요."),
        ("The cat sat on the mat while the rain fell.", "Stock prices rose while the bank waited on the report."),
    ],
)
def test_unrelated_texts_have_nothing_in_common(one: str, other: str) -> None:
    assert score(SCORER, one, truth=other).value == 0.0
    assert score(SCORER, one, truth=one).value == 1.0


def test_korean_particles_and_width_do_not_count() -> None:
    assert score(SCORER, "도서관에서 회의를", truth="도서관은 회의가").value == 1.0
    assert score(SCORER, "ＡＢＣ会議", truth="abc会議").value == 1.0


@pytest.mark.parametrize(("one", "other", "value"), [("of the", "of the", 1.0), ("😀", "😃", 0.0), ("of", "tea", 0.0)])
def test_texts_that_say_nothing_are_compared_word_for_word(one: str, other: str, value: float) -> None:
    assert score(SCORER, one, truth=other).value == value


def test_against_the_input() -> None:
    assert SCORER.needed(SCORER.options.model_validate({"against": "input"})) == ("output", "input")
    assert score(SCORER, "tea", question="tea", truth="coffee", against="input").value == 1.0
