"""What Prometheus scrapes: where metrics are kept, and their text."""

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.exposition import choose_encoder


def make_registry() -> CollectorRegistry:
    """Return a registry for a process's metrics."""
    # The creation time of every series would double the text and nobody graphs it.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    return CollectorRegistry()


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return all metrics in the format that `accept` asks for, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
