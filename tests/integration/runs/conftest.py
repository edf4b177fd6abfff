"""One service for all the tests of a file, its judge answering well again before each."""

from collections.abc import Iterator

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.integration.service import Service


@pytest.fixture(scope="module")
def running_service(valkey_server: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    with Service(valkey_server.url, tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture
def service(running_service: Service) -> Service:
    running_service.stub.reset()
    return running_service
