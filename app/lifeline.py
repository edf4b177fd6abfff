"""Ends this process when the one that started it ends, however that ends, on Linux and macOS alike.

The parent keeps the other end of the pipe that is this process's standard input. Even SIGKILL closes it.
"""

import os
import signal
import threading
import time

STDIN = 0
# More than API and workers take beyond their own limits: to close, to give runs back, to say farewell.
DRAIN_MARGIN_S = 10.0


def follow_stdin(grace_s: float) -> None:
    """Ask this process to end (SIGTERM) when standard input closes, and end it hard `grace_s` seconds later."""
    threading.Thread(target=_follow, args=(grace_s,), name="lifeline", daemon=True).start()


def _follow(grace_s: float) -> None:
    while os.read(STDIN, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_s)
    os._exit(1)
