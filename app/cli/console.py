"""Where the commands write: results to stdout, what is said about them to stderr."""

from rich.console import Console
from rich.markup import escape

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


class Mistake(Exception):
    """Something the user can put right; the message is one line that says how."""


def say_mistake(error: Exception) -> None:
    """Print a mistake without a stack trace."""
    for line in str(error).splitlines():
        err.print(f"[bold red]assay:[/] {escape(line)}")
