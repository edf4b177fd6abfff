from collections import Counter
from typing import Any

import pytest

from bench.labelled.replies import UNPARSEABLE, Reading, Reply, reading_of, readings


def reply(raw: str, *right: Any, asks: str = "score_reason") -> Reply:
    return Reply("r", asks, raw, right)


@pytest.mark.parametrize(
    ("one", "reading"),
    [
        (reply('```json\n{"score": 0.8, "reason": "Loaded."}\n```', {"score": 0.8}), Reading.RIGHT),
        (reply('{"score": 80}', UNPARSEABLE), Reading.RIGHT),
        (reply("I can't help with that.", UNPARSEABLE), Reading.RIGHT),
        (reply('{"score": "0.7"}', {"score": 0.7}), Reading.REFUSED),
        (reply('{"score": "0.7"}', {"score": 0.7}, UNPARSEABLE), Reading.RIGHT),
        (reply('{"score": 0.2}', UNPARSEABLE), Reading.WRONG),
        (reply('{"pass": true, "score": 1}', {"pass": True}, asks="pass_score"), Reading.RIGHT),
        (reply('{"pass": "maybe", "score": 1}', UNPARSEABLE, asks="pass_score"), Reading.RIGHT),
        (reply('{"verdicts": [{"verdict": "Yes."}]}', {"verdicts": ["yes"]}, asks="verdicts"), Reading.RIGHT),
        (reply('{"verdicts": [{"verdict": "perhaps"}]}', {"verdicts": ["yes"]}, asks="verdicts"), Reading.REFUSED),
        (reply('{"verdicts": [{}]}', {"verdicts": ["yes"]}, asks="verdicts"), Reading.REFUSED),
    ],
)
def test_what_becomes_of_a_reply(one: Reply, reading: Reading) -> None:
    assert reading_of(one) is reading


def test_readings_are_counted_by_what_was_asked_for() -> None:
    counted = readings([reply('{"score": 1}', {"score": 1}), reply("4", 4, asks="digit_1_5")])
    assert counted == {"score_reason": Counter({Reading.RIGHT: 1}), "pass_score": Counter(), "verdicts": Counter()}
