import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.scorers.tone import SCORER
from tests.unit.scorers.computing import score

GLAD = "I love this place, it is wonderful."
CROSS = "This is awful. I hate it."
SENTENCES = st.lists(
    st.sampled_from([GLAD, "This is awful.", "The train left.", "It is fine!"]), min_size=1, max_size=6
)


def test_worked_example_with_a_reference() -> None:
    """VADER: great is 3.1, alone 3.1 / sqrt(3.1^2 + 15) = 0.6249; a neutral text is 0."""
    result = score(SCORER, "Great", truth="The train left.", textLanguage="en")
    assert result.value == pytest.approx(1 - 0.6249)
    told = result.analysis.model_dump()
    assert (told["sentiment"], told["referenceSentiment"], told["variance"]) == (pytest.approx(0.6249), 0.0, None)


def test_worked_example_without_one() -> None:
    """0.6249 and 0: their variance is (0.6249 / 2)^2."""
    result = score(SCORER, "That is great. The train left.")
    assert result.value == pytest.approx(1 - (0.6249 / 2) ** 2)
    told = result.analysis.model_dump()
    assert (told["sentences"], told["referenceSentiment"]) == (2, None)


def test_opposite_tones_are_far_apart() -> None:
    assert score(SCORER, GLAD, truth=CROSS).value == 0.0


@given(SENTENCES)
def test_a_text_has_the_tone_of_itself(sentences: list[str]) -> None:
    text = " ".join(sentences)
    assert score(SCORER, text, truth=text, textLanguage="en").value == 1.0


@given(SENTENCES, SENTENCES)
def test_it_does_not_matter_which_text_is_the_reference(one: list[str], other: list[str]) -> None:
    texts = " ".join(one), " ".join(other)
    values = [
        score(SCORER, text, truth=truth, textLanguage="en").value for text, truth in (texts, tuple(reversed(texts)))
    ]
    assert values[0] == values[1]


@given(st.sampled_from([GLAD, "This is awful.", "The train left."]), st.integers(1, 5))
def test_an_even_tone_is_steady(sentence: str, times: int) -> None:
    assert score(SCORER, " ".join([sentence] * times), textLanguage="en").value == pytest.approx(1.0)


@pytest.mark.parametrize(
    "text",
    [
        "이 장소는 정말 멋집니다. 저는 이곳을 사랑합니다.",
        "Dit is een prachtige plek en ik hou ervan.",
        "Det her er et dejligt sted, jeg elsker det.",
        "Ce lieu est merveilleux.",
        "Questo posto è meraviglioso.",
        "この場所は素晴らしいです。",
        "😀😀",
        "...",
    ],
)
def test_no_english_lexicon_for_other_languages(text: str) -> None:
    for result in (score(SCORER, text), score(SCORER, GLAD, truth=text)):
        assert (result.value, result.sentence) == (None, "unknown_language")
        assert result.analysis.model_dump()["sentiment"] is None


def test_the_language_may_be_told() -> None:
    assert score(SCORER, GLAD, textLanguage="fr").value is None
    assert score(SCORER, "Dreadful grand weather", textLanguage="en-GB").value == 1.0


def test_a_blank_reference_is_none() -> None:
    assert score(SCORER, GLAD, truth=" ").analysis.model_dump()["comparedWith"] == "itself"
