"""`assay serve` and `assay worker`: one process each, as containers and `assay up` start them."""

from typing import Annotated

import typer

from app.lifeline import DRAIN_MARGIN_S, follow_stdin
from app.settings import load_settings

FollowStdin = Annotated[
    bool, typer.Option("--follow-stdin", hidden=True, help="End when standard input closes, as `assay up` needs it.")
]


def serve(follow: FollowStdin = False) -> None:
    """Run one API process, in the foreground."""
    from app.main import serve as serve_api  # noqa: PLC0415 - keeps the other commands quick

    settings = load_settings()
    if follow:
        follow_stdin(grace_s=settings.inline_wait_s + DRAIN_MARGIN_S)
    serve_api(settings)


def worker(follow: FollowStdin = False) -> None:
    """Run one worker process, in the foreground."""
    from worker.__main__ import main as work  # noqa: PLC0415 - keeps the other commands quick

    settings = load_settings()
    if follow:
        follow_stdin(grace_s=settings.worker_grace_s + DRAIN_MARGIN_S)
    work(settings)
