import json
from dataclasses import replace
from typing import Any

import pytest

from app.adapters.chat_complaint import Complaint, read_complaint
from app.adapters.chat_dialect import FULL, Dialect, ReplyFormat
from app.adapters.chat_payload import chat_payload, without_limits
from tests.unit.adapters.chat_fakes import PROMPT, SCHEMA


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "No TEMPERATURE"}}, "no temperature"),
        ({"error": "No temperature"}, "no temperature"),
        ({"message": "No temperature", "object": "error"}, "no temperature"),
        ({"error": None, "message": "No temperature"}, "no temperature"),
        ([{"error": {"message": "No temperature"}}], "no temperature"),
        ({"detail": "No temperature"}, "no temperature"),
        (
            {"error": {"message": "Provider error", "metadata": {"raw": "No temperature"}}},
            "provider error no temperature",
        ),
        ({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs", "input": "text"}]}, "body.seed extra inputs"),
        ("No temperature", ""),
        ([], ""),
        (7, ""),
        ({"error": {"message": {"deep": 1}}}, ""),
        ({"error": ["No temperature"]}, ""),
        ({"detail": ["odd", None]}, ""),
    ],
)
def test_words_of_every_error_shape(body: Any, text: str) -> None:
    assert read_complaint(json.dumps(body).encode()).text == text


def test_a_plain_text_body_is_the_message() -> None:
    assert read_complaint(b"System role not supported \xff").text == "system role not supported �"


def test_long_complaints_are_read_to_a_point() -> None:
    assert len(read_complaint(json.dumps({"error": "x" * 9_999}).encode()).text) == 2_000


def test_a_validation_error_that_echoes_the_prompt_is_not_searched_in_the_echo() -> None:
    echo = {"detail": [{"loc": ["body", "model"], "msg": "Input should be valid", "input": "about response_format"}]}

    assert FULL.without(read_complaint(json.dumps(echo).encode())) is None


MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."


@pytest.mark.parametrize(
    ("complaint", "learned"),
    [
        (Complaint(MAX_TOKENS.lower(), param="max_tokens"), {"token_fields": ("max_completion_tokens",)}),
        (Complaint(MAX_TOKENS.lower()), {"token_fields": ("max_completion_tokens",)}),
        (Complaint(TEMPERATURE.lower(), param="temperature"), {"dropped": frozenset({"temperature"})}),
        (Complaint("`temperature` is deprecated for this model"), {"dropped": frozenset({"temperature"})}),
        (Complaint("body.seed extra inputs are not permitted"), {"dropped": frozenset({"seed"})}),
        (Complaint("unsupported parameter", param="top_p"), {"dropped": frozenset({"top_p"})}),
        (Complaint("system role not supported"), {"system_role": False}),
        (Complaint("developer instruction is not enabled for models/small"), {"system_role": False}),
        (Complaint("conversation roles must alternate user/assistant/user"), {"system_role": False}),
        (
            Complaint("unsupported value: 'messages[0].role' does not support 'system'", param="messages[0].role"),
            {"system_role": False},
        ),
        (Complaint("this response_format type is unavailable now"), {"reply_format": ReplyFormat.OBJECT}),
        (Complaint("unsupported", param="response_format"), {"reply_format": ReplyFormat.OBJECT}),
        (Complaint("model does not support structured outputs"), {"reply_format": ReplyFormat.OBJECT}),
        (
            Complaint("invalid schema for response_format 'x': 'minitems' is not permitted"),
            {"reply_format": ReplyFormat.UNBOUNDED},
        ),
        (Complaint("unsupported json schema fields: minitems"), {"reply_format": ReplyFormat.UNBOUNDED}),
        (
            Complaint("one or more response schemas specified unsupported field min_length"),
            {"reply_format": ReplyFormat.UNBOUNDED},
        ),
        (Complaint("response_format: strict is not supported"), {"reply_format": ReplyFormat.LOOSE}),
        (Complaint("logprobs is not enabled for models/small"), {"most_logprobs": 0}),
        (Complaint("extra inputs are not permitted", param="logprobs"), {"most_logprobs": 0}),
        (Complaint("you are not allowed to request logprobs from this model"), {"most_logprobs": 0}),
        (Complaint("invalid value", param="top_logprobs"), {"most_logprobs": 5}),
        (Complaint("requested 20 logprobs, which is greater than the limit of 8"), {"most_logprobs": 5}),
    ],
)
def test_what_each_refusal_teaches(complaint: Complaint, learned: dict[str, Any]) -> None:
    dialect = FULL.without(complaint)

    assert dialect is not None
    changed = {name: getattr(dialect, name) for name in learned}
    assert changed == learned
    others = {"reply_format", "token_fields", "system_role", "dropped", "most_logprobs"} - set(learned)
    assert all(getattr(dialect, name) == getattr(FULL, name) for name in others)


@pytest.mark.parametrize(
    "text",
    [
        "the model `judge` does not exist",
        "max_tokens is too large: 9000. this model supports at most 4096",
        "invalid value for 'max_tokens': must be less than or equal to 4096",
        "the max_tokens_per_minute quota is spent",
        "",
    ],
)
def test_what_teaches_nothing(text: str) -> None:
    assert FULL.without(Complaint(text)) is None


def test_learning_ends_whatever_is_refused() -> None:
    everything = Complaint(
        "logprobs max_tokens max_completion_tokens temperature top_p seed response_format strict system role"
    )
    dialect: Dialect | None = FULL
    steps = 0

    while dialect is not None:
        last, dialect, steps = dialect, dialect.without(everything), steps + 1

    assert steps < 14
    assert last == Dialect(
        ReplyFormat.PROMPT, (), system_role=False, dropped=frozenset({"temperature", "top_p", "seed"}), most_logprobs=0
    )


def sent(dialect: Dialect, sample: int = 0, **parameters: Any) -> dict[str, Any]:
    prompt = replace(PROMPT, sample=sample)
    body: dict[str, Any] = json.loads(chat_payload("judge", prompt, dialect, parameters, 300))
    return body


def test_the_full_dialect_pins_the_schema_and_says_nothing_about_it_in_words() -> None:
    body = sent(FULL, temperature=0.0, seed=7, reasoning_effort="low")

    assert body == {
        "model": "judge",
        "messages": [{"role": "system", "content": PROMPT.system}, {"role": "user", "content": PROMPT.user}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "bias_analyze", "strict": True, "schema": SCHEMA},
        },
        "max_tokens": 300,
        "temperature": 0.0,
        "seed": 7,
        "reasoning_effort": "low",
    }


@pytest.mark.parametrize("reply_format", [f for f in ReplyFormat if f is not ReplyFormat.STRICT])
def test_what_the_format_does_not_pin_is_said_in_the_prompt(reply_format: ReplyFormat) -> None:
    system = sent(Dialect(reply_format))["messages"][0]["content"]

    assert system.startswith(PROMPT.system)
    assert json.loads(system[system.index("{") :]) == SCHEMA


@pytest.mark.parametrize(
    ("reply_format", "expected"),
    [
        (ReplyFormat.UNBOUNDED, {"name": "bias_analyze", "strict": True, "schema": without_limits(SCHEMA)}),
        (ReplyFormat.LOOSE, {"name": "bias_analyze", "strict": False, "schema": without_limits(SCHEMA)}),
    ],
)
def test_simpler_schemas(reply_format: ReplyFormat, expected: dict[str, Any]) -> None:
    body = sent(Dialect(reply_format))

    assert body["response_format"] == {"type": "json_schema", "json_schema": expected}
    assert "minItems" not in json.dumps(body["response_format"])


def test_object_and_prompt_formats() -> None:
    assert sent(Dialect(ReplyFormat.OBJECT))["response_format"] == {"type": "json_object"}
    assert "response_format" not in sent(Dialect(ReplyFormat.PROMPT))


def test_without_system_role_all_is_one_user_message() -> None:
    assert sent(Dialect(system_role=False))["messages"] == [
        {"role": "user", "content": f"{PROMPT.system}\n\n{PROMPT.user}"}
    ]


@pytest.mark.parametrize(
    ("wanted", "most", "asked"), [(20, 20, 20), (5, 20, 5), (20, 5, 5), (20, 0, None), (0, 20, None)]
)
def test_logprobs_are_asked_for_when_wanted_and_no_more_than_are_given(
    wanted: int, most: int, asked: int | None
) -> None:
    prompt = replace(PROMPT, logprobs=wanted)
    body = json.loads(chat_payload("judge", prompt, Dialect(most_logprobs=most), {}, 300))

    assert (body.get("logprobs"), body.get("top_logprobs")) == (True if asked else None, asked)


def test_without_token_field_no_limit_is_sent() -> None:
    body = sent(Dialect(token_fields=()))

    assert not {"max_tokens", "max_completion_tokens"} & set(body)


def test_limits_go_and_property_names_stay() -> None:
    schema = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "maxLength": 9, "pattern": "a"},
            "minItems": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1}},
            "either": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
        },
        "required": ["pattern", "minItems", "either"],
        "$defs": {"part": {"type": "array", "maxItems": 2, "prefixItems": [{"type": "number", "maximum": 2}]}},
        "additionalProperties": False,
    }

    assert without_limits(schema) == {
        "type": "object",
        "properties": {
            "pattern": {"type": "string"},
            "minItems": {"type": "array", "items": {"type": "integer"}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["pattern", "minItems", "either"],
        "$defs": {"part": {"type": "array", "prefixItems": [{"type": "number"}]}},
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("configured", "sample", "sampled"),
    [
        ({"temperature": 0.0}, 0, {"temperature": 0.0}),
        ({"temperature": 0.0}, 1, {"temperature": 1.0, "seed": 1}),
        ({"temperature": 0.0, "seed": 7}, 0, {"temperature": 0.0, "seed": 7}),
        ({"temperature": 0.0, "seed": 7}, 3, {"temperature": 1.0, "seed": 10}),
        ({"temperature": 0.6, "top_p": 0.95}, 2, {"temperature": 0.6, "top_p": 0.95, "seed": 2}),
    ],
)
def test_samples_differ_by_seed_and_by_the_judges_own_temperature_if_it_has_one(
    configured: dict[str, float], sample: int, sampled: dict[str, float]
) -> None:
    body = sent(FULL, sample, **configured)
    assert {name: body[name] for name in ("temperature", "top_p", "seed") if name in body} == sampled


def test_samples_do_without_what_the_provider_refuses() -> None:
    body = sent(Dialect(dropped=frozenset({"temperature", "seed"})), 2, temperature=0.0)
    assert not {"temperature", "seed"} & set(body)
