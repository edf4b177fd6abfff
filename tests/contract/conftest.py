"""One running app for all contract tests; its judge answers well again before each."""

from collections.abc import Iterator

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey
from tests.contract.running import RunningApp, settings_for
from tests.integration.conftest import valkey_server
from tests.stub_judge.process import StubProcess

__all__ = ["valkey_server"]


@pytest.fixture(scope="session")
def judge() -> Iterator[StubProcess]:
    with StubProcess() as stub:
        yield stub


@pytest.fixture(scope="session")
def running_app(valkey_server: EmbeddedValkey, judge: StubProcess) -> Iterator[RunningApp]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    with RunningApp(settings_for(valkey_server.url, judge.base_url)) as api:
        yield api


@pytest.fixture
def api(running_app: RunningApp, judge: StubProcess) -> RunningApp:
    judge.reset()
    return running_app
