"""Idempotency-Key, quoted or bare."""

import pytest

from app.api.idempotency import idempotency_key_of, parse_key
from app.domain.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("abc", "abc"),
        ('"abc"', "abc"),
        ('"a b"', "a b"),
        (r'"a\"b\\c"', r'a"b\c'),
        ("x" * 255, "x" * 255),
        ('"' + "x" * 255 + '"', "x" * 255),
    ],
)
def test_keys(text: str, key: str) -> None:
    assert parse_key(text) == key


@pytest.mark.parametrize("text", ["", '""', '"', '"abc', "a b", "é", "x" * 256, '"a\tb"', "a\x7f", '"a"b"'])
def test_what_is_no_key(text: str) -> None:
    assert parse_key(text) is None


def test_no_header_is_no_key() -> None:
    assert idempotency_key_of({"headers": [(b"prefer", b"wait=1")]}) is None


@pytest.mark.parametrize("values", [[b""], [b"a b"], [b"a", b"b"], ["é".encode()]])
def test_a_header_that_is_no_key_is_refused_without_repeating_it(values: list[bytes]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        idempotency_key_of({"headers": [(b"idempotency-key", value) for value in values]})
    assert [fault.pointer for fault in caught.value.faults] == ["#/Idempotency-Key"]
