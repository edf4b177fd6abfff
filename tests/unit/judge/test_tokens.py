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


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("도서관은 아침 아홉 시에 문을 엽니다. 정원에는 오래된 나무가 있습니다.", 83),
        ("図書館は朝九時に開きます。庭には古い木があります。", 37),
        ("图书馆早上九点开门。花园里有一棵老树。", 37),
        ("The library opens at nine in the morning. There is an old tree in the garden.", 18),
        ("埊剢鱤歬珙湩崶钤泯莌褔夂欖粗疆礤鰱槲匔抈膗飨啽秮隠馚撱褶聋楎终繺呍榑莐穷涌斀鑗拹", 120),
        ("𧫭𣐢𦙴𣛦𩠈𧞻𤻼𧣺𧉵𧵾𪁬𢹽𧲲𣑟𨩒𦈉𦭏𡊡𠰒𤛈𥳡𤙆𩻷𠓀𨓖𢺚𤌨𨌚𦒘𩄿", 120),
        ("햐맬봱늞쌜꾩뗓쌅듆뭪뎡굎삝쒚죋녒쑨샐뱦촼훔꾃뽗씶틨뭀쭂꺜렃떧쳣툚됫금류뿼왈윣쪡컐", 120),
        ("👩\u200d🚀🇫🇷👍🏽" * 8, 200),
    ],
)
def test_what_real_tokenizers_take(text: str, most: int) -> None:
    """The most that one of seven took: three generations of GPT, Claude, two of Llama, Mistral."""
    assert most <= token_bound(text)


def test_plain_words_cost_half_their_letters_at_least() -> None:
    prose = "The quick brown fox jumps over the lazy dog and runs away. " * 20
    words = len(re.findall(r"\w+|[^\w\s]", prose))
    assert 1.3 * words < token_bound(prose) < 0.75 * len(prose)


@given(st.text())
def test_is_never_less_than_a_token_a_word_or_half_the_bytes(text: str) -> None:
    assert token_bound(text) >= max(len(text.split()), len(text.encode("utf-8", "replace")) // 2 - 1)


@given(st.text(), st.text())
def test_lines_add_up(one: str, other: str) -> None:
    assert token_bound(f"{one}\n{other}") <= token_bound(one) + token_bound(other) + 1


def test_fixed_texts_are_taken_for_prose_in_ascii_alone() -> None:
    assert fixed_token_bound("Some instructions.") == 10
    assert fixed_token_bound("指示。") == token_bound("指示。") == 9
