import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.computed import alignment
from app.scorers.textual_difference import SCORER
from tests.unit.scorers.computing import score

TEXTS = st.text(alphabet=st.sampled_from("ab c.é회の会😀\n"), min_size=1).filter(str.strip)


def test_worked_example() -> None:
    """10 words and marks; nine -> ten and one word more: 2 of 10 changed, in 2 places."""
    result = score(
        SCORER, "The ferry leaves at ten from the old harbour.", truth="The ferry leaves at nine from the harbour."
    )
    assert result.value == pytest.approx(0.8)
    assert result.analysis.model_dump() == {
        "similarityRatio": pytest.approx(0.8),
        "changes": 2,
        "wordsReplaced": 1,
        "wordsInserted": 1,
        "wordsDeleted": 0,
        "lengthDifference": pytest.approx(3 / 45),
        "exact": True,
    }
    assert (result.sentence, dict(result.facts)) == ("changed", {"changes": 2, "changed": 2, "words": 10})


def test_deleted_words() -> None:
    result = score(SCORER, "one four", truth="one two three four")
    assert result.value == 0.5
    assert (result.analysis.words_deleted, result.analysis.changes) == (2, 1)  # type: ignore[attr-defined]


@given(TEXTS)
def test_a_text_is_equal_to_itself(text: str) -> None:
    result = score(SCORER, text, truth=text)
    assert (result.value, result.sentence) == (1.0, "equal")


@given(TEXTS, TEXTS)
def test_it_does_not_matter_which_text_is_the_reference(one: str, other: str) -> None:
    assert score(SCORER, one, truth=other).value == score(SCORER, other, truth=one).value


@given(TEXTS, TEXTS)
def test_words_add_up(one: str, other: str) -> None:
    told = score(SCORER, one, truth=other).analysis.model_dump()
    assert (told["changes"] == 0) == (told["similarityRatio"] == 1.0)
    assert told["changes"] <= told["wordsReplaced"] + told["wordsInserted"] + told["wordsDeleted"]


def test_unrelated_chinese_texts_differ() -> None:
    assert score(SCORER, "我们明天去北京开会。", truth="今天的汤太咸了！").value == 0.0
    assert score(SCORER, "我们明天去北京开会。", truth="我们后天去北京开会。").value == pytest.approx(5 / 6)


def test_unicode_forms_are_no_change_and_case_is_one_unless_ignored() -> None:
    composed = "Café à la maison, 회의 がぎぐ"
    assert score(SCORER, unicodedata.normalize("NFD", composed), truth=composed).value == 1.0
    assert score(SCORER, "STRASSE", truth="straße").value == 0.0
    assert score(SCORER, "STRASSE", truth="straße", ignoreCase=True).value == 1.0


def test_against_the_input() -> None:
    assert SCORER.needed(SCORER.options()) == ("output", "groundTruth")
    assert SCORER.needed(SCORER.options.model_validate({"against": "input"})) == ("output", "input")
    assert score(SCORER, "same", question="same", truth="other", against="input").value == 1.0


@given(st.lists(st.sampled_from("abcdefgh"), min_size=30, max_size=80), st.data())
def test_long_texts_are_aligned_by_passages(words: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    edited = [*words[:place], "new", *words[place + 1 :]]
    assume(edited != words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "CELLS", 400)
        same, changed = (score(SCORER, " ".join(text), truth=" ".join(words)) for text in (words, edited))
    assert (same.value, same.analysis.exact) == (1.0, False)  # type: ignore[attr-defined]
    assert changed.value is not None
    assert changed.value < 1.0


def test_only_what_differs_between_equal_passages_is_aligned_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"word{n}" for n in range(2_000)]
    edited = [*words[:1_000], "another", *words[1_001:]]
    monkeypatch.setattr(alignment, "CELLS", 200_000)
    told = score(SCORER, " ".join(edited), truth=" ".join(words))
    assert told.value == pytest.approx(1 - 1 / 2_000)
    assert (told.analysis.changes, told.analysis.exact) == (1, False)  # type: ignore[attr-defined]


def test_texts_that_moved_entirely_are_no_less_than_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "CELLS", 16)
    assert score(SCORER, "b b b b b b a", truth="a c c c c c c").value == 0.0
