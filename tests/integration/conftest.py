"""A real Valkey for the integration tests: one server a session, empty at the start of each test."""

from collections.abc import Iterator

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedValkey]:
    server = start_valkey(tmp_path_factory.mktemp("valkey"))
    yield server
    server.stop()


@pytest.fixture
def valkey_url(valkey_server: EmbeddedValkey) -> str:
    """URL of the session's server, flushed for this test."""
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    return valkey_server.url
