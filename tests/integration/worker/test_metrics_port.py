"""A worker's own /metrics."""

import urllib.request
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry, Counter

from app.observe.exposition import make_registry
from tests.integration.service import free_port
from worker.metrics import serve_metrics

HOST = "127.0.0.1"


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = make_registry()
    Counter("assay_runs", "Runs", registry=registry).inc(3)
    return registry


def read(port: int | None) -> str:
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def test_metrics_are_served_until_the_end_of_the_block(registry: CollectorRegistry) -> None:
    with serve_metrics(HOST, free_port(), registry) as port:
        assert "assay_runs_total 3.0" in read(port)
        assert "_created" not in read(port)
    with pytest.raises(OSError, match="refused"):
        read(port)


def test_workers_of_one_machine_take_one_port_after_another(registry: CollectorRegistry) -> None:
    first = free_port()
    with ExitStack() as stack:
        ports = [stack.enter_context(serve_metrics(HOST, first, registry)) for _ in range(3)]
        assert ports[0] == first
        assert len(set(ports)) == 3
        assert all("assay_runs_total" in read(port) for port in ports)
    with serve_metrics(HOST, first, registry) as port:
        assert port == first


def test_zero_means_none(registry: CollectorRegistry) -> None:
    with serve_metrics(HOST, 0, registry) as port:
        assert port is None


def test_a_worker_works_without_a_free_port(registry: CollectorRegistry) -> None:
    with ExitStack() as stack:
        taken = stack.enter_context(serve_metrics(HOST, 65535, registry))
        if taken is None:
            pytest.skip("something else has the last port")
        with serve_metrics(HOST, 65535, registry) as port:
            assert port is None


def test_an_address_that_is_not_ours_is_an_error(registry: CollectorRegistry) -> None:
    with pytest.raises(OSError), serve_metrics("192.0.2.1", free_port(), registry):
        pass
