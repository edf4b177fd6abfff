"""The request body of one judge call, in the dialect of its model."""

from collections.abc import Mapping
from typing import Any

import orjson

from app.adapters.chat_dialect import Dialect, ReplyFormat
from app.ports import Prompt

SAMPLE_TEMPERATURE = 1.0
"""The model's own distribution, as it was trained: how often a label comes up tells how likely the model holds it."""
_LIMITS = {
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
}


def chat_payload(model: str, prompt: Prompt, dialect: Dialect, parameters: Mapping[str, Any], max_tokens: int) -> bytes:
    """Return the JSON to post: one system and one user message, the form of the reply, the limit and the parameters.

    Where the form can't be pinned exactly by `response_format`, the schema stands in the prompt as well.
    """
    body: dict[str, Any] = {"model": model, "messages": _messages(prompt, dialect)}
    reply_format = _response_format(prompt, dialect.reply_format)
    if reply_format is not None:
        body["response_format"] = reply_format
    if dialect.token_fields:
        body[dialect.token_fields[0]] = max_tokens
    if logprobs := min(prompt.logprobs, dialect.most_logprobs):
        body.update(logprobs=True, top_logprobs=logprobs)
    sent = {**parameters, **_sampling(parameters, prompt.sample)}
    body.update((name, value) for name, value in sent.items() if name not in dialect.dropped)
    return orjson.dumps(body)


def _sampling(parameters: Mapping[str, Any], sample: int) -> dict[str, Any]:
    """Return what makes samples differ, each in its own way: a seed, and a temperature where the judge has none."""
    if not sample:
        return {}
    return {
        "temperature": parameters.get("temperature") or SAMPLE_TEMPERATURE,
        "seed": parameters.get("seed", 0) + sample,
    }


def _messages(prompt: Prompt, dialect: Dialect) -> list[dict[str, str]]:
    system = prompt.system
    if dialect.reply_format is not ReplyFormat.STRICT:
        system = f"{system}\n\n{described(prompt.schema)}"
    if dialect.system_role:
        return [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}]
    return [{"role": "user", "content": f"{system}\n\n{prompt.user}"}]


def described(schema: dict[str, Any]) -> str:
    """Return the sentence that stands in for a schema that the provider does not take."""
    form = orjson.dumps(schema).decode()
    return f"Answer with one JSON document and nothing else. It must fit this JSON schema:\n{form}"


def _response_format(prompt: Prompt, reply_format: ReplyFormat) -> dict[str, Any] | None:
    if reply_format is ReplyFormat.PROMPT:
        return None
    if reply_format is ReplyFormat.OBJECT:
        return {"type": "json_object"}
    exact = reply_format is ReplyFormat.STRICT
    schema = prompt.schema if exact else without_limits(prompt.schema)
    strict = reply_format is not ReplyFormat.LOOSE
    return {"type": "json_schema", "json_schema": {"name": prompt.name, "strict": strict, "schema": schema}}


def without_limits(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without counts, lengths and ranges, which some constrained decoders refuse.

    Names of properties are left alone, whatever they are called.
    """
    kept = {keyword: value for keyword, value in schema.items() if keyword not in _LIMITS}
    return {keyword: _inside(keyword, value) for keyword, value in kept.items()}


def _inside(keyword: str, value: Any) -> Any:
    if keyword in {"properties", "$defs"} and isinstance(value, dict):
        return {name: without_limits(part) for name, part in value.items()}
    if keyword in {"items", "additionalProperties"} and isinstance(value, dict):
        return without_limits(value)
    if keyword in {"anyOf", "oneOf", "allOf", "prefixItems"} and isinstance(value, list):
        return [without_limits(part) for part in value]
    return value
