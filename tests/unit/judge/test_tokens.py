import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.judge.tokens import fixed_token_bound, token_bound


@pytest.mark.parametrize(
    "text",
    [
        "日本語の文章です。",
        "中文句子也一样。",
        "한국어 문장입니다.",
        "Ελληνικά, русский, العربية, हिन्दी",
        "😀👩‍🚀🇫🇷",
        "1234567890",
        "{}[]()<>!?#%&",
        base64.b64encode(bytes(range(200))).decode(),
        "aGVsbG8gd29ybGQ",
        "HTTPSConnectionPool_tooLong",
        "pneumonoultramicroscopicsilicovolcanoconiosis",
    ],
)
def test_text_that_tokenizers_cut_small_counts_by_bytes(text: str) -> None:
    credit = sum(len(word) // 2 for word in re.findall(r"(?<!\S)[ ]?[a-z]{2,20}(?!\S)", text))
    assert token_bound(text) >= len(text.encode()) - credit


def test_plain_words_cost_half_their_letters_at_least() -> None:
    prose = "The quick brown fox jumps over the lazy dog and runs away. " * 20
    words = len(re.findall(r"\w+|[^\w\s]", prose))
    assert 1.3 * words < token_bound(prose) < 0.7 * len(prose)


@given(st.text())
def test_is_never_less_than_a_token_a_word_or_half_the_bytes(text: str) -> None:
    assert token_bound(text) >= max(len(text.split()), len(text.encode("utf-8", "replace")) // 2 - 1)


@given(st.text(), st.text())
def test_lines_add_up(one: str, other: str) -> None:
    assert token_bound(f"{one}\n{other}") <= token_bound(one) + token_bound(other) + 1


def test_the_bound_of_fixed_texts_is_the_same() -> None:
    assert fixed_token_bound("Some instructions.") == token_bound("Some instructions.")
