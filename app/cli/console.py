"""Where the commands write: results to stdout, what is said about them to stderr."""

import sys
from contextlib import suppress

from rich.console import Console

USAGE_EXIT = 2

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


class Mistake(Exception):
    """Something the user can put right; the message is one line that says how."""


def say(message: str) -> None:
    """Tell the user something, one line at a time, on stderr; a terminal that is gone is no reason to fail."""
    with suppress(OSError):
        for line in message.splitlines():
            sys.stderr.write(f"assay: {line}\n")
        sys.stderr.flush()
