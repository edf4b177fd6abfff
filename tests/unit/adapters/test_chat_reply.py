import json
import math
from typing import Any

import pytest

from app.adapters.chat_reply import read_reply
from app.ports import FinishReason, Token

JSON_TEXT = '{"verdicts": []}'


def body(message: Any, finish: Any = "stop", **more: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], **more}).encode()


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": JSON_TEXT}, JSON_TEXT),
        ({"content": [{"type": "text", "text": '{"verdicts"'}, {"type": "text", "text": ": []}"}]}, JSON_TEXT),
        ({"content": [{"type": "thinking", "thinking": "hm", "text": "no"}, {"type": "text", "text": "a"}]}, "a"),
        ({"content": [{"type": "reasoning", "text": "no"}, {"type": "output_text", "text": "a"}]}, "a"),
        ({"content": [{"text": "a"}, "stray", {"type": "text", "text": None}]}, "a"),
        ({"content": "", "reasoning_content": JSON_TEXT}, ""),
        ({"content": None, "reasoning": JSON_TEXT}, ""),
        ({"content": None}, ""),
        ({}, ""),
        ({"content": 7}, ""),
        ({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": JSON_TEXT}}]}, JSON_TEXT),
        ({"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"verdicts": []}}}]}, JSON_TEXT),
        ({"content": "a", "tool_calls": [{"function": {"arguments": "b"}}]}, "a"),
        ({"content": "", "tool_calls": []}, ""),
        ({"content": "", "tool_calls": [{"function": None}]}, ""),
        ({"content": "", "tool_calls": [{"function": {"arguments": 7}}]}, ""),
        ({"content": JSON_TEXT, "refusal": None}, JSON_TEXT),
        ({"content": JSON_TEXT, "refusal": "no"}, JSON_TEXT),
    ],
)
def test_text_in_every_shape(message: dict[str, Any], text: str) -> None:
    reply = read_reply(body(message))

    assert reply is not None
    assert (reply.text, reply.finish) == (text, FinishReason.STOP)


@pytest.mark.parametrize("content", [None, "", "  ", []])
def test_a_refusal_beside_empty_content(content: Any) -> None:
    reply = read_reply(body({"content": content, "refusal": "I can't help with that."}))

    assert reply is not None
    assert reply.finish is FinishReason.REFUSAL


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        *[(name, FinishReason.STOP) for name in ("stop", "eos", "end_turn", "tool_calls", "STOP", "", None, 3)],
        *[(name, FinishReason.LENGTH) for name in ("length", "max_tokens", "MAX_TOKENS", "model_length")],
        *[(name, FinishReason.REFUSAL) for name in ("content_filter", "refusal", "SAFETY", "prohibited_content")],
    ],
)
def test_finish_reasons_by_every_name(reason: Any, finish: FinishReason) -> None:
    reply = read_reply(body({"content": "a"}, finish=reason))

    assert reply is not None
    assert reply.finish is finish


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 3}, (5, 3)),
        ({"prompt_tokens": 5.0, "completion_tokens": None}, (5, 0)),
        ({"prompt_tokens": -5, "completion_tokens": "3"}, (0, 0)),
        ({"prompt_tokens": True, "completion_tokens": 1e99}, (0, 0)),
        ({}, (0, 0)),
        (None, (0, 0)),
        ([], (0, 0)),
    ],
)
def test_tokens_that_were_not_counted_are_zero(usage: Any, tokens: tuple[int, int]) -> None:
    reply = read_reply(body({"content": "a"}, usage=usage))

    assert reply is not None
    assert (reply.input_tokens, reply.output_tokens) == tokens


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html><body>Bad gateway</body></html>",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": [null]}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": "text"}]}',
        b'{"error": {"message": "overloaded"}}',
        b'{"error": "overloaded", "choices": [{"message": {"content": "a"}}]}',
        b'{"choices": [{"finish_reason": "error", "message": {"content": "a"}}]}',
        body({"content": "a" * 100})[:60],
        b"[" * 100_000,
        b'{"choices": [{"message": {"content": "a"}, "x": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_completion(raw: bytes) -> None:
    assert read_reply(raw) is None


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'{"choices": [{"message": {"content": "half \\ud835 of a pair"}}]}', "half � of a pair"),
        (b'{"choices": [{"message": {"content": "a whole \\ud83d\\ude00 and \\ude00"}}]}', "a whole 😀 and �"),
        (b'{"choices": [{"message": {"content": "raw\nline"}}]}', "raw\nline"),
        (b'{"choices": [{"message": {"content": "cut \xe2\x82 here"}}]}', "cut � here"),
        (b'{"choices": [{"logprob": NaN, "message": {"content": "a"}}]}', "a"),
    ],
)
def test_slips_in_the_encoding_do_not_cost_the_reply(raw: bytes, text: str) -> None:
    reply = read_reply(raw)

    assert reply is not None
    assert reply.text == text
    reply.text.encode()


def told(*content: Any) -> Any:
    """The tokens of a reply with these entries in its logprobs."""
    choice = {"message": {"content": JSON_TEXT}, "finish_reason": "stop", "logprobs": {"content": list(content)}}
    reply = read_reply(json.dumps({"choices": [choice]}).encode())
    assert reply is not None
    assert reply.text == JSON_TEXT
    return reply.tokens


def entry(token: Any, probability: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(probability), "bytes": None, **more}


def test_tokens_are_read_with_what_else_was_likely() -> None:
    cut = entry(
        "\ufffd", 0.5, bytes=[0xEA, 0xB7], top_logprobs=[entry("\ufffd", 0.5, bytes=[0xEA, 0xB7]), entry("é", 0.25)]
    )
    impossible = {"token": "no", "logprob": -9999.0}
    assert told(cut, impossible, entry("rest", 1.0, logprob=1e-9)) == (
        Token(b"\xea\xb7", 0.5, ((b"\xea\xb7", 0.5), ("é".encode(), 0.25))),
        Token(b"no", 0.0),
        Token(b"rest", 1.0),
    )


@pytest.mark.parametrize(
    "strange",
    [
        "no entry",
        {"token": "no"},
        {"token": "no", "logprob": None},
        {"token": "no", "logprob": True},
        {"token": "no", "logprob": "0"},
        {"token": "no", "logprob": math.nan},
        {"token": 7, "logprob": 0.0},
        {"token": "no", "logprob": 0.0, "bytes": [256]},
        {"token": "no", "logprob": 0.0, "bytes": ["n"]},
    ],
)
def test_tokens_without_a_probability_cost_all_of_them_and_not_the_reply(strange: Any) -> None:
    assert told(entry("yes"), strange) is None
    assert told(entry("yes", top_logprobs=[strange, entry("no", 0.5)])) == (Token(b"yes", 1.0, ((b"no", 0.5),)),)
    assert told(entry("yes", top_logprobs={"no": -1.0})) == (Token(b"yes", 1.0),)


@pytest.mark.parametrize("logprobs", [None, [], {}, {"content": None}, {"content": []}, {"content": "yes"}])
def test_replies_without_tokens(logprobs: Any) -> None:
    choice = {"message": {"content": JSON_TEXT}, "finish_reason": "stop", "logprobs": logprobs}
    reply = read_reply(json.dumps({"choices": [choice]}).encode())
    assert reply is not None
    assert reply.tokens is None
