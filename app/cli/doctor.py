"""`assay doctor`: what is well, what is worth knowing, and what is in the way."""

import asyncio
import os

import typer
from rich.markup import escape

from app.cli.checks import Finding, Level, judge, redis, service, versions
from app.cli.console import out
from app.settings import Settings, SettingsError, load_settings

STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


def doctor() -> None:
    """Check settings, Redis, workers and the judge; exit code 1 when something is in the way."""
    findings = versions()
    try:
        settings = load_settings()
    except SettingsError as error:
        findings += [Finding(Level.FAIL, "settings", line) for line in str(error).splitlines()]
    else:
        findings.append(Finding(Level.OK, "settings", "all readable"))
        findings += asyncio.run(_look(settings))
    for finding in findings:
        style = STYLES[finding.level]
        out.print(f"[{style}]{finding.level.value:<5}[/] [bold]{finding.name:<18}[/] {escape(finding.detail)}")
    if any(finding.level is Level.FAIL for finding in findings):
        raise typer.Exit(1)


async def _look(settings: Settings) -> list[Finding]:
    looks = (redis(settings), service(settings), judge(settings, os.environ))
    return [finding for found in await asyncio.gather(*looks) for finding in found]
