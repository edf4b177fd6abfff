import asyncio
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from sentencex import get_sentence_boundaries

from app.judge.segment import MAX_SEGMENT, Segment, Segments, _segments, segments_of


def texts(text: str) -> list[str]:
    return [segment.text for segment in segments_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith paid 3.50 dollars. See www.example.com today.", 2),
        ("It rained in May. Women knew.", ["It rained in May.", "Women knew."]),
        ("It was not me. Paris is far, etc. Élodie too.", ["It was not me.", "Paris is far, etc.", "Élodie too."]),
        ("No. 5 is Miss. Lee, of no. 7, etc. and so on.", 1),
        ("M. Dupont est là. Il dort.", ["M. Dupont est là.", "Il dort."]),
        ("Prof. Dr. Müller kam. Er ging.", ["Prof. Dr. Müller kam.", "Er ging."]),
        ("¿Qué? ¡No! El Sr. Pérez llegó.", ["¿Qué?", "¡No!", "El Sr. Pérez llegó."]),
        ("안녕하세요. 정말요? 네", ["안녕하세요.", "정말요?", "네"]),
        ("「本当？」と彼は言った。はい。", ["「本当？」と彼は言った。", "はい。"]),
        ("「行く。」「帰る。」", ["「行く。」", "「帰る。」"]),
        ("你好。“真的吗？”他说。再见！", ["你好。", "“真的吗？”他说。", "再见！"]),
        ("यह एक वाक्य है। दूसरा।", ["यह एक वाक्य है।", "दूसरा।"]),
        ("1. First.\n2. Second.", ["1. First.", "2. Second."]),
        ("(a) First point\n(b) Second point", ["(a) First point", "(b) Second point"]),
        ("- dry\n- wet", ["- dry", "- wet"]),
        ("Good: • cheap • fast", ["Good:", "• cheap", "• fast"]),
        ("one\r\ntwo\rthree\x0bfour\x85five\u2028six\u2029seven", 7),
        ("Well ... !!! 😀", ["Well ... !!! 😀"]),
        ("😀👍", ["😀👍"]),
        ("  \n\t \u3000 ", []),
        ("", []),
    ],
)
def test_cuts_where_a_reader_would(text: str, expected: list[str] | int) -> None:
    assert (texts(text) if isinstance(expected, list) else len(texts(text))) == expected


def test_spans_count_code_points() -> None:
    text = "👩‍🚀 flies. e\u0301tude. \u200bNext."
    assert [text[start:end] for start, end, *_ in segments_of(text)] == ["👩‍🚀 flies.", "e\u0301tude.", "\u200bNext."]


ALPHABET = st.sampled_from("aB1.!?。？」「\"'()“”-• \n\r\t\u3000\x85é\u0301한日😀\u200d🇫🇷🏽\u200b")


@given(st.text(st.one_of(ALPHABET, st.characters(exclude_categories=["Cs"])), max_size=2_500))
def test_segments_are_verbatim_ordered_trimmed_bounded_and_complete(text: str) -> None:
    check_segments(text)


WIDE_SPACES = [chr(code) for code in range(0x80, 0x10000) if chr(code).isspace()]


@pytest.mark.parametrize("space", WIDE_SPACES, ids=ascii)
def test_spaces_beyond_ascii_before_a_mark(space: str) -> None:
    for before, mark in product("Bb1.é", ".!?。"):
        check_segments(f"{before}{space}{mark}")
        check_segments(f"So it is. Then {before}{space}{mark}{space}Next, J{space}. R{space}{mark} Tolkien.")


@given(st.text(st.sampled_from(["B", "x", ".", "!", " ", "\n", "”", "é", *WIDE_SPACES]), max_size=200))
def test_texts_with_spaces_beyond_ascii(text: str) -> None:
    check_segments(text)


def test_halves_of_surrogate_pairs_do_not_keep_sentences_together() -> None:
    assert texts("One \ud835. Two. Three\udc00.") == ["One \ud835.", "Two.", "Three\udc00."]


class Panic(BaseException):
    """What a library in Rust raises when it panics: no Exception."""


@pytest.mark.parametrize("error", [Panic, ValueError, MemoryError])
def test_a_text_that_the_library_fails_at_is_cut_at_its_lines(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(language: str, text: str) -> None:
        raise error(text)

    monkeypatch.setattr("app.judge.segment.get_sentence_boundaries", fail)
    with structlog.testing.capture_logs() as logs:
        assert texts("One. Two.\n\nIt was in May. Women knew.") == ["One. Two.", "It was in May.", "Women knew."]
    assert [entry["error"] for entry in logs] == [error.__name__] * 2
    assert "One" not in str(logs)
    check_segments("Many words. " * 1_000 + "\n" + "x" * 9_000)


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_an_end_of_the_program_is_no_failure_of_the_library(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(language: str, text: str) -> None:
        raise error

    monkeypatch.setattr("app.judge.segment.get_sentence_boundaries", end)
    with pytest.raises(error):
        segments_of("One. Two.")


def check_segments(text: str) -> None:
    segments = segments_of(text)
    covered = set()
    position = 0
    for segment in segments:
        assert segment.text == text[segment.start : segment.end]
        assert segment.text == segment.text.strip() != ""
        assert position <= segment.start
        assert len(segment.text) <= MAX_SEGMENT
        covered.update(range(segment.start, segment.end))
        position = segment.end
    assert all(index in covered for index, character in enumerate(text) if not character.isspace())


def test_long_sentences_are_split_at_whitespace() -> None:
    text = "word " * 500 + "end."
    pieces = texts(text)
    assert len(pieces) > 1
    assert set(" ".join(pieces).split()) == {"word", "end."}


@pytest.mark.parametrize("character", ["e\u0301", "👩\u200d🚀", "👍🏽", "🇫🇷", "각", "क्\u200dष"])
def test_a_hard_split_leaves_characters_whole(character: str) -> None:
    pieces = texts(character * 700)
    assert "".join(pieces) == character * 700
    assert all(len(piece) % len(character) == 0 for piece in pieces)


def test_a_character_without_end_is_split_all_the_same() -> None:
    assert "".join(texts("a" + "\u0301" * 2_000)) == "a" + "\u0301" * 2_000


def test_a_sentence_may_cross_the_chunks_that_the_library_sees() -> None:
    filler = "Some words are here. " * 189  # a little less than 4,000
    assert len(filler) < 4_000
    text = filler + "This one crosses the border of the chunk and stays whole. Done."
    assert texts(text)[-2:] == ["This one crosses the border of the chunk and stays whole.", "Done."]


@pytest.mark.parametrize("unit", ["好。", "“", '"', "a. ", "•", "\u0301", "x", "1. ", "「あ。」", "Ab c. "])
def test_the_library_never_sees_much_at_once_nor_twice(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def cut(language: str, text: str) -> list[dict[str, int]]:
        seen.append(len(text))
        return get_sentence_boundaries(language, text)

    monkeypatch.setattr("app.judge.segment.get_sentence_boundaries", cut)
    length = 40_000 // len(unit) * len(unit)
    segments_of(unit * (length // len(unit)))
    assert max(seen) <= 4_000
    assert sum(seen) <= 2.5 * length


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are cut from now on."""
    seen: list[str] = []

    def cut(text: str) -> Iterator[Segment]:
        seen.append(text)
        return _segments(text)

    monkeypatch.setattr("app.judge.segment._segments", cut)
    return seen


@pytest.mark.parametrize("length", [1, 1_000])
def test_a_text_is_cut_once_as_long_as_somebody_holds_its_segments(length: int, cuts: list[str]) -> None:
    def text() -> str:
        return "One more sentence. " * length

    held = segments_of(text())
    assert segments_of(text()) is held
    assert segments_of(text() + "Other.") is not held
    assert cuts == [text(), text() + "Other."]
    del held
    gc.collect()
    assert len(segments_of(text())) == length
    assert cuts.count(text()) == 2


def test_threads_that_need_a_long_text_at_once_wait_for_the_one_that_cuts_it(cuts: list[str]) -> None:
    ready = threading.Barrier(4)

    def cut() -> Segments:
        ready.wait(10)
        return segments_of("One more sentence. " * 2_000)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: cut(), range(4)))
    assert len(cuts) == 1
    assert all(segments is found[0] for segments in found)
