"""Where the commands write: results to stdout, what is said about them to stderr."""

from rich.console import Console
from rich.markup import escape

USAGE_EXIT = 2

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


class Mistake(Exception):
    """Something the user can put right; the message is one line that says how."""


def say(message: str) -> None:
    """Tell the user something, one line at a time, on stderr."""
    for line in message.splitlines():
        err.print(f"[bold]assay:[/] {escape(line)}")
