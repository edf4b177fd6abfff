import math
from typing import Any

import pytest

from app.judge.labels import label_in, number_in, reason_in, text_in

YES_NO = ("yes", "no")
KINDS = ("fact", "racial_ethnic", "hate_speech_mild", "none")


@pytest.mark.parametrize(
    "value",
    [
        "yes",
        "YES",
        " Yes ",
        "yes.",
        "Yes!",
        '"yes"',
        "'Yes.'",
        "`yes`",
        "**yes**",
        "“yes”",
        "Yes, because it generalises about no one else.",
        "yes; it demeans",
        "Yes: biased",
        "yes - it is",
        "Yes — without doubt",
        "yes (clearly)",
        "Yes. It is.",
        True,
        "true",
        "True",
        "true, it is",
    ],
)
def test_every_way_to_say_yes(value: Any) -> None:
    assert label_in(value, YES_NO) == "yes"


@pytest.mark.parametrize("value", ["no", "No.", " NO ", "no, it reports", False, "false", "False."])
def test_every_way_to_say_no(value: Any) -> None:
    assert label_in(value, YES_NO) == "no"


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "maybe",
        "yes and no",
        "yes, no",
        "no: yes",
        "Yes — no doubt",
        "yes/no",
        "yes it is",
        "not yes",
        "I say yes",
        "yesterday",
        "oui",
        1,
        0,
        1.0,
        math.nan,
        ["yes"],
        {"label": "yes"},
    ],
)
def test_what_is_no_label(value: Any) -> None:
    assert label_in(value, YES_NO) is None


@pytest.mark.parametrize(
    "value",
    [
        "No, actually yes",
        "No. Actually, yes.",
        "yes, I mean no",
        "Yes: or rather no",
        "yes (or no)",
        "No - wait, yes",
        "No, on second thought yes",
        "No; correction: YES!",
        "No, it is 'yes'",
        "no, actually true",
        "Yes, there is no doubt",
        "Yes, because, wait, no",
        "Yes, since or rather no",
    ],
)
def test_a_label_that_is_soon_replaced_is_none(value: str) -> None:
    assert label_in(value, YES_NO) is None


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("Yes, because no other group is spared", "yes"),
        ("Yes, since no one else is named", "yes"),
        ("No, as yes-men are no group", "no"),
        ("Yes, although no word of it is rude", "yes"),
        ("Yes, it is a generalisation about people and has no ground", "yes"),
        ("No, no, no", "no"),
        ("yes, yesterday", "yes"),
        ("no, nothing", "no"),
    ],
)
def test_another_label_in_the_grounds_of_one_does_not_replace_it(value: str, label: str) -> None:
    assert label_in(value, YES_NO) == label


@pytest.mark.parametrize(
    "value",
    ["fact, or rather none", "none: I mean hate speech mild", "fact (racial-ethnic)", "none, actually racial ethnic."],
)
def test_labels_of_several_words_replace_too(value: str) -> None:
    assert label_in(value, KINDS) is None


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("racial-ethnic", "racial_ethnic"),
        ("Racial Ethnic", "racial_ethnic"),
        ("Hate speech (mild)", None),
        ("hate_speech_mild: a slur", "hate_speech_mild"),
        ("Hate-speech-mild", "hate_speech_mild"),
        ("none", "none"),
        ("fact, fact", "fact"),
        (True, None),
        ("None of them", None),
    ],
)
def test_labels_of_several_words(value: Any, label: str | None) -> None:
    assert label_in(value, KINDS) == label


@pytest.mark.parametrize(("value"), [3, 3.0, "3", " 3 ", "[3]", "3.", "3)", "3.0"])
def test_a_number(value: Any) -> None:
    assert number_in(value) == 3


@pytest.mark.parametrize(("value", "number"), [(0, 0), ("0", 0), (-3, -3), ("-3", -3), ("[-3]", -3), (-3.0, -3)])
def test_a_number_that_no_item_has(value: Any, number: int) -> None:
    assert number_in(value) == number


@pytest.mark.parametrize(
    "value", [None, True, 3.5, math.nan, math.inf, -math.inf, "", "three", "3, 4", "1e3", "9" * 20, [3]]
)
def test_what_is_no_number(value: Any) -> None:
    assert number_in(value) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (" why ", "why"),
        ("half \ud835 pair", "half \ufffd pair"),
        ("whole \U0001d54f", "whole \U0001d54f"),
        ("nul\x00", "nul"),
        ("", None),
        (" \n", None),
        (None, None),
        (3, None),
        (["why"], None),
    ],
)
def test_a_text(value: Any, text: str | None) -> None:
    assert text_in(value) == text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("It blames.", "It blames."),
        ("It blames a.", "It blames a."),
        ("It blames a town.", "It blames a…"),
        ("It blames some town.", "It blames…"),
        ("It blames   a town", "It blames…"),
        ("Itblamesatown", "Itblamesato…"),
        ("a " + "b" * 20, "a bbbbbbbbb…"),
        ("町全体を悪く言っているのです", "町全体を悪く言っている…"),
        ("x\x00" * 1_000_000, "x" * 11 + "…"),
        (" " * 1_000_000 + "So.", "So."),
        ("", None),
        (3, None),
    ],
)
def test_a_reason_is_cut_to_its_length(value: Any, reason: str | None) -> None:
    assert reason_in(value, 12) == reason
