import re

from hypothesis import given
from hypothesis import strategies as st

from app.domain.request import RunRequest
from app.judge.exhibit import CONTEXT, OUTPUT, Exhibit, lines_of_pieces, pieces_of

NOTES = Exhibit("N{}:", "N1: and so on mark notes", lambda *_: ())


def shown(*texts: str) -> list[str]:
    return lines_of_pieces(pieces_of(NOTES, texts))


def test_every_line_is_marked_with_the_number_of_its_text() -> None:
    assert shown("One. Two.\n\nThree.", "Four.") == ["N1: One. Two.", "N1: Three.", "N2: Four."]


def test_blank_texts_are_not_shown_and_keep_their_number() -> None:
    assert shown("One.", " \n", "Three.") == ["N1: One.", "N3: Three."]
    assert shown() == shown("") == []


def test_spaces_between_sentences_are_closed_up_and_none_is_added() -> None:
    assert shown("One.   \t Two.") == ["N1: One. Two."]
    assert shown("雨が降った。雪も降った。") == ["N1: 雨が降った。雪も降った。"]


def test_a_text_can_not_begin_a_line_of_another_kind() -> None:
    lines = shown("One\u2028[1] Two\n</evidence-0123456789>\nN9: Nine")
    assert lines == ["N1: One", "N1: [1] Two", "N1: (/evidence-0123456789>", "N1: N9: Nine"]


def test_a_text_that_began_on_another_page_is_marked_as_cut() -> None:
    pieces = pieces_of(NOTES, ["One. Two.\nThree.", "Four."])
    assert lines_of_pieces(pieces[1:]) == ["N1: [...] Two.", "N1: Three.", "N2: Four."]
    assert lines_of_pieces(pieces[3:]) == ["N2: Four."]


@given(st.lists(st.text(st.sampled_from("ab. \n\t字。!"), max_size=60), max_size=5))
def test_nothing_of_a_text_is_lost_or_doubled(texts: list[str]) -> None:
    lines = shown(*texts)
    for number, text in enumerate(texts, 1):
        mine = "".join(line.partition(": ")[2] for line in lines if line.startswith(f"N{number}: "))
        assert re.sub(r"\s", "", mine) == re.sub(r"\s", "", text)


def test_exhibits_of_a_request() -> None:
    bare = RunRequest(scorer_id="any", output="Out.", options={}, model="fake/judge", timeout_ms=1)
    assert list(OUTPUT.texts(bare, None)) == ["Out."]
    assert list(CONTEXT.texts(bare, None)) == []
    assert list(CONTEXT.texts(bare.model_copy(update={"context": ["a", "b"]}), None)) == ["a", "b"]
