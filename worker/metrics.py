"""Serves a worker's /metrics."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

# As many workers as `assay up` starts at most.
PORTS = 64


@contextmanager
def serve_metrics(host: str, first_port: int, registry: CollectorRegistry) -> Iterator[int | None]:
    """Serve on the first port from `first_port` on that is free, in a thread, until the block ends.

    Gives the port, or None when `first_port` is 0 or all are taken: a worker works without its metrics too.
    """
    for port in range(first_port, min(first_port + PORTS, 65536)) if first_port else ():
        try:
            server, thread = start_http_server(port, host, registry)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        try:
            yield port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
        return
    yield None
