"""What tells one caller from another."""

from typing import Any

import pytest

from app.api.auth import caller_of


def scope(*headers: tuple[bytes, bytes], client: tuple[str, int] | None = ("10.0.0.1", 1234)) -> dict[str, Any]:
    return {"type": "http", "headers": list(headers), "client": client}


def test_a_caller_is_told_by_its_address_when_it_sends_no_credential() -> None:
    assert caller_of(scope()) == caller_of(scope(client=("10.0.0.1", 4321)))
    assert caller_of(scope()) != caller_of(scope(client=("10.0.0.2", 1234)))
    assert caller_of(scope(client=None)) == b""


@pytest.mark.parametrize("name", [b"authorization", b"x-api-key"])
def test_a_credential_counts_more_than_an_address(name: bytes) -> None:
    mine = caller_of(scope((name, b"mine")))
    assert mine == caller_of(scope((name, b"mine"), client=("10.0.0.2", 1)))
    assert mine not in {caller_of(scope((name, b"yours"))), caller_of(scope((name, b""))), caller_of(scope())}
