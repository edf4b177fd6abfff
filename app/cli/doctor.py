"""`assay doctor`: what is well, what is worth knowing, and what is in the way."""

import asyncio

import typer
from rich.markup import escape

from app.cli.console import out
from app.cli.finding import Level

STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


def doctor() -> None:
    """Check settings, Redis, workers and the judge; exit code 1 when something is in the way."""
    from app.cli.checks import look  # noqa: PLC0415 - imports what a server does

    findings = asyncio.run(look())
    for finding in findings:
        style = STYLES[finding.level]
        out.print(f"[{style}]{finding.level.value:<5}[/] [bold]{finding.name:<20}[/] {escape(finding.detail)}")
    if any(finding.level is Level.FAIL for finding in findings):
        raise typer.Exit(1)
