"""The text that Prometheus scrapes."""

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.exposition import choose_encoder


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return all metrics in the format that `accept` asks for, and its content type."""
    # The creation time of every series would double the text and nobody graphs it.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
