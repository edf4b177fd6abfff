"""What a 200 answer says, in whichever of the shapes that OpenAI-compatible servers use."""

import json
import math
from typing import Any, NamedTuple

import orjson

from app.ports import FinishReason, Token

_CUT = {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
_REFUSED = {"content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii"}
_FAILED = "error"


class Reply(NamedTuple):
    """Text, why it ended, tokens as counted by the provider (0 when it did not), and their probabilities if told."""

    text: str
    finish: FinishReason
    input_tokens: int
    output_tokens: int
    tokens: tuple[Token, ...] | None = None


def read_reply(body: bytes) -> Reply | None:
    """Return what the model said, or None when the body is no chat completion (HTML, an error, cut JSON)."""
    document = _loads(body)
    if not isinstance(document, dict) or document.get("error"):
        return None
    choice = _first(document.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict) or choice.get("finish_reason") == _FAILED:
        return None
    text, refused = _text(message)
    finish = FinishReason.REFUSAL if refused else _finish(choice.get("finish_reason"))
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Reply(
        text=text,
        finish=finish,
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        tokens=_tokens(choice.get("logprobs")),
    )


def _loads(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    # Slower and more tolerant: halves of surrogate pairs, raw control characters, bytes that are not UTF-8.
    try:
        return json.loads(body.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _first(items: Any) -> dict[str, Any]:
    """Return the first object of a list, an empty one when there is none."""
    first = items[0] if isinstance(items, list) and items else None
    return first if isinstance(first, dict) else {}


def _text(message: dict[str, Any]) -> tuple[str, bool]:
    """Return the text of a message, and whether it is a refusal."""
    text = _content(message.get("content")) or _arguments(message.get("tool_calls"))
    refusal = message.get("refusal")
    if not text.strip() and isinstance(refusal, str) and refusal.strip():
        return _whole(refusal), True
    return _whole(text), False


def _content(content: Any) -> str:
    """Return a string content, or the text parts of a list; parts that hold reasoning are not the answer."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") in {"text", "output_text"}]
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _arguments(tool_calls: Any) -> str:
    """Return the arguments of the first tool call: some gateways make one out of a JSON schema."""
    function = _first(tool_calls).get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False)
    return arguments if isinstance(arguments, str) else ""


def _whole(text: str) -> str:
    """Return text with every lone surrogate replaced, so that it can be encoded and stored."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _finish(reason: Any) -> FinishReason:
    name = reason.lower() if isinstance(reason, str) else ""
    if name in _CUT:
        return FinishReason.LENGTH
    return FinishReason.REFUSAL if name in _REFUSED else FinishReason.STOP


def _count(tokens: Any) -> int:
    if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not 0 <= tokens < 1e12:
        return 0
    return int(tokens)


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    """Return the tokens of a reply with their probabilities, None when any of them is not told."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not content:
        return None
    tokens = []
    for entry in content:
        token = _token(entry)
        if token is None:
            return None
        likeliest = entry.get("top_logprobs")
        others = map(_token, likeliest) if isinstance(likeliest, list) else ()
        tokens.append(Token(*token, tuple(other for other in others if other is not None)))
    return tuple(tokens)


def _token(entry: Any) -> tuple[bytes, float] | None:
    if not isinstance(entry, dict):
        return None
    raw, text, logprob = entry.get("bytes"), entry.get("token"), entry.get("logprob")
    if isinstance(logprob, bool) or not isinstance(logprob, int | float) or math.isnan(logprob):
        return None
    if not isinstance(raw, list):
        return (text.encode("utf-8", "surrogatepass"), math.exp(min(logprob, 0))) if isinstance(text, str) else None
    try:
        return bytes(raw), math.exp(min(logprob, 0))
    except (ValueError, TypeError):
        return None
