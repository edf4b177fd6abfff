from typing import Any

import pytest
from pydantic import ValidationError

from app.domain.messages import Message, text_of
from app.domain.parts import Part
from app.domain.request import Options, RunRequest, ScoreRequest


def faults(kind: Any, /, **fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(fields)
    return [(".".join(map(str, fault["loc"])), fault["type"]) for fault in caught.value.errors()]


def request(**fields: Any) -> RunRequest:
    return RunRequest.model_validate(
        {"scorerId": "bias", "output": "x", "options": {}, "model": "a/b", "timeoutMs": 1_000} | fields
    )


MESSAGES = [
    Message(role="assistant", content="One."),
    Message(role="assistant", content=[Part(text="Two."), Part(type="image_url"), Part(text=""), Part(text="Three.")]),
    Message(role="assistant", content=None),
]


def test_one_text_is_made_of_all_messages_and_parts() -> None:
    assert text_of(MESSAGES) == "One.\n\nTwo.\n\nThree."
    assert text_of("plain") == "plain"
    assert request(output=MESSAGES).text == "One.\n\nTwo.\n\nThree."


def test_the_question_is_optional() -> None:
    assert request().question is None
    assert request(input="Why?").question == "Why?"
    assert request(input=[{"role": "user", "content": "Why?"}]).question == "Why?"


def test_messages_may_carry_what_is_not_judged() -> None:
    message = Message.model_validate(
        {"role": "assistant", "id": 7, "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"text": "Hi."}]}
    )
    assert message.texts() == ["Hi."]


@pytest.mark.parametrize("output", ["", " \n\u3000", [{"role": "user", "content": " "}], [{"role": "user"}]])
def test_a_blank_output_is_refused(output: Any) -> None:
    assert "blank" in [code for _, code in faults(ScoreRequest, output=output)]


@pytest.mark.parametrize(("text", "code"), [("a\x00b", "nul_character"), ("é\ud800", "string_unicode")])
@pytest.mark.parametrize("field", ["output", "input", "groundTruth"])
def test_text_that_no_client_meant_is_refused(text: str, code: str, field: str) -> None:
    assert code in [found for _, found in faults(ScoreRequest, **{"output": "x", field: text})]


@pytest.mark.parametrize("text", ["日本語", "😀", "x" * 1_000_000])
def test_any_other_text_is_taken(text: str) -> None:
    assert ScoreRequest(output=text).output == text


def test_text_has_a_limit() -> None:
    assert "string_too_long" in [code for _, code in faults(ScoreRequest, output="x" * 1_000_001)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"zz": 1}, "extra_forbidden"),
        ({"threshold": float("nan")}, "finite_number"),
        ({"runId": "short"}, "string_pattern_mismatch"),
        ({"model": "noslash"}, "string_pattern_mismatch"),
        ({"timeoutMs": 0}, "greater_than_equal"),
        ({"metadata": {str(n): n for n in range(17)}}, "too_long"),
    ],
)
def test_faults_have_their_codes(fields: dict[str, Any], code: str) -> None:
    assert code in [found for _, found in faults(ScoreRequest, output="x", **fields)]


@pytest.mark.parametrize(
    "tag", ["en", "FR", "fr-CA", "pt-BR", "zh-Hant", "de-CH-1996", "uz-Cyrl-UZ", "i-klingon", None]
)
def test_language_tags(tag: str | None) -> None:
    assert Options(language=tag).language == tag


@pytest.mark.parametrize(
    "tag", ["", "english", "chinese", "xx", "en_US", "zz-ZZ", "de-", "日本", "e" * 40, "en; do this"]
)
def test_what_is_no_language_tag(tag: str) -> None:
    ((place, code),) = faults(Options, language=tag)
    assert (place, code) in {("language", "language"), ("language", "string_too_long")}


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 1_000_001])
def test_the_scale_is_a_positive_number(scale: float) -> None:
    assert [place for place, _ in faults(Options, scale=scale)] == ["scale"]


def test_options_have_defaults() -> None:
    assert Options().model_dump(mode="json") == {
        "scale": 1.0,
        "includeReason": True,
        "language": None,
        "strategy": "three_step",
        "samples": 1,
        "scoring": "hard",
        "examples": None,
    }
