"""A process that owns a Valkey, for tests that kill it: prints the server's URL and then waits.

argv: the data directory, and optionally `fork`, to leave a child that holds every descriptor of the owner.
"""

import os
import signal
import sys
import time
from pathlib import Path

from app.adapters.embedded_valkey import start_valkey


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = start_valkey(Path(sys.argv[1]))
    child = os.fork() if "fork" in sys.argv else 0
    if child or "fork" not in sys.argv:
        print(server.url, child, flush=True)
    time.sleep(60)


if __name__ == "__main__":
    main()
