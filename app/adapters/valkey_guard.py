"""Runs one server for as long as its owner lives; started as a script, so it imports the standard library only.

argv: the descriptor of the lock, a directory to remove at the end (or ""), then the server's command line.
The owner holds the other end of stdin and never writes to it: end of file means that the owner is gone, whatever
became of it.
"""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

POLL_S = 0.5
GRACE_S = 20.0


def main(argv: list[str]) -> int:
    """Start the server, wait for its end or the owner's, and return the server's exit status."""
    lock, directory, command = int(argv[0]), argv[1], argv[2:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    owner = os.getppid()
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(lock,))  # noqa: S603
    # From here on the lock is the server's alone: it is free exactly when the server is gone.
    os.close(lock)
    try:
        # A forked child of the owner may hold the pipe open beyond its death; a changed parent tells then.
        while server.poll() is None and os.getppid() == owner and not _closed(sys.stdin.fileno()):
            pass
    finally:
        _stop(server)
        if directory:
            with suppress(OSError):
                Path(directory).rmdir()
    return server.returncode


def _closed(pipe: int) -> bool:
    readable, _, _ = select.select([pipe], [], [], POLL_S)
    return bool(readable) and os.read(pipe, 1) == b""


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
