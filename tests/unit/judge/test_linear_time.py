"""No text makes a reading function take more than linear time: with a quadratic one these would run for minutes."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.errors import AssayError
from app.judge.fence import lines_of, one_line
from app.judge.labels import label_in, number_in, text_in
from app.judge.language import language_of
from app.judge.loose_json import NotJson, loads, read_at
from app.judge.parse import answer_in
from app.judge.quotation import is_given
from app.judge.refusal import is_refusal
from app.judge.segment import segments_of
from app.judge.tokens import token_bound
from app.ports import Completion, FinishReason

SIZE = 100_000
LABELS = ("yes", "no", "hate_speech_mild")

READERS: dict[str, Callable[[str], Any]] = {
    "label_in": lambda text: label_in(text, LABELS),
    "number_in": number_in,
    "text_in": text_in,
    "answer_in": lambda text: answer_in(Completion(text, FinishReason.STOP, "fake/judge"), "verdicts", text),
    "loads": loads,
    "read_at": lambda text: read_at(text, 0),
    "is_refusal": is_refusal,
    "is_given": lambda text: is_given(text, text),
    "one_line": one_line,
    "lines_of": lines_of,
    "token_bound": token_bound,
    "segments_of": segments_of,
    "language_of": language_of,
}
UNITS = [
    *(
        " ",
        "\n",
        "\t",
        "x",
        "yes ",
        "yes-",
        "- ",
        " - ",
        "_",
        ".",
        ",",
        "(",
        "—",
        "0",
        "1",
        "1.0",
        "[",
        "]",
        "[[",
        "{",
        "}",
    ),
    *(
        "{}",
        "[{",
        '{"',
        '{"a":',
        '{"a":[',
        "{a:",
        '"',
        "'",
        "“",
        "\\",
        '\\"',
        ', "',
        ",a:",
        "//",
        "/*",
        "*/",
        "#",
        "//\n",
    ),
    *(
        "<",
        "<|",
        "<|a",
        "< ",
        "< /",
        "< / ",
        "/ ",
        "<" + " " * 5_000,
        "＜",
        "＜／",
        "|>",
        "<think>",
        "</think>",
        "<s",
        "[INST",
        "[ ",
        ">",
        "\n> ",
        "```",
        "json",
    ),
    *(
        "I can",
        "ich kann ",
        "I’m sorry ",
        "the text ",
        "it says ",
        "but ",
        "I will ",
        "。",
        "•",
        "\u0301",
        "\u200d",
        "\u00a0",
    ),
    *("me. ", "B. ", "1. ", "“a", "a”", "\ufeff", "\ud800", "\x00", "\u200b", "🇫🇷", "各", "각"),
]
BEGINNINGS = ["yes", '{"a": "']


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_much_of_the_same_is_read(reader: Callable[[str], Any]) -> None:
    for unit in UNITS:
        much = unit * (SIZE // len(unit))
        for text in (much, *(f"{beginning}{much}x" for beginning in BEGINNINGS)):
            try:
                reader(text)
            except (AssayError, NotJson):
                continue


def test_a_label_before_much_else_is_found_and_much_before_a_label_is_not() -> None:
    assert label_in("yes, because" + " so" * SIZE, LABELS) == "yes"
    assert label_in("yes" + " " * SIZE + ", because", LABELS) == "yes"
    assert label_in(" " * SIZE + "yes", LABELS) == "yes"
    assert label_in("yes" + " " * SIZE + "x", LABELS) is None
    assert label_in("so" + " so" * SIZE + ": yes", LABELS) is None
