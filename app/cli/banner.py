"""The one block that `assay up` prints when everything runs."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from rich.markup import escape

from app import __version__
from app.cli.child import Child
from app.cli.console import out
from app.cli.judge_choice import DEFAULT_MODELS, JudgeChoice, Source, key_variable
from app.cli.plan import Plan
from app.settings import Settings

EXAMPLE = (
    '{"output": "The new library opens on Monday. Everyone knows that old people cannot learn to use computers, '
    'so they should not bother to come."}'
)


class Place(NamedTuple):
    """Something that runs: what, where, and as which process when it is one of ours."""

    name: str
    where: str
    pid: int | None = None


def describe(settings: Settings, choice: JudgeChoice, plan: Plan, children: Sequence[Child]) -> list[Place]:
    """Return what runs where, as the block shows it."""
    pids = {child.command.name: child.pid for child in children}
    first_port = settings.worker_metrics_port
    metrics = f", /metrics on the first free port from {first_port}" if first_port else ""
    workers = [
        Place("Worker", f"{settings.worker_concurrency} runs at once{metrics}", pids[command.name])
        for command in plan.workers
    ]
    judge = choice.model_id or ("none" if choice.source is Source.NONE else f"as {settings.models_file} says")
    at = f" at {plan.judge_url}/v1" if plan.judge_url else ""
    return [
        Place("API", f"{plan.url}   (/docs, /metrics, /readyz)", pids[plan.api.name]),
        *workers,
        Place("Redis", _redis_place(settings)),
        Place("Judge", judge + at, pids[plan.judge.name] if plan.judge else None),
    ]


def _redis_place(settings: Settings) -> str:
    if settings.redis_url is None:
        return f"embedded Valkey in {settings.data_dir / 'valkey'}"
    url = urlsplit(settings.redis_url.get_secret_value())
    return f"{url.scheme}://{url.hostname or url.path}" + (f":{url.port}" if url.port else "")


def show_ready(url: str, places: Sequence[Place], choice: JudgeChoice, ollama: str | None, logs: Path) -> None:
    """Print what runs where, which judge is used, how to use a better one and a line to try."""
    lines = [f"[bold green]Assay {__version__} is ready.[/] Ctrl-C ends everything.", ""]
    lines += [_row(place) for place in places]
    lines += [_row(Place("Logs", f"{logs}/")), ""]
    lines += _about_judge(choice, ollama)
    lines += ["[bold]Try it:[/]", "", escape(curl_line(url)), ""]
    out.print("\n".join(lines))


def curl_line(url: str) -> str:
    """Return a command that scores a text, ready to paste into a shell."""
    return (
        f"curl -sS '{url}/v1/scorers/bias/runs?include=steps' -H 'Content-Type: application/json' "
        f"-d {shlex.quote(EXAMPLE)} | python3 -m json.tool"
    )


def _row(place: Place) -> str:
    pid = f"  [dim]pid {place.pid}[/]" if place.pid else ""
    return f"  [bold]{place.name:<8}[/]{escape(place.where)}{pid}"


def _about_judge(choice: JudgeChoice, ollama: str | None) -> list[str]:
    if choice.source is Source.CONFIGURED:
        return []
    if choice.source is Source.KEY:
        return [
            f"  {choice.key} is set, so {choice.model_id} judges: the texts you score go to that provider.",
            "  Another of its models: ASSAY_JUDGE_MODEL=provider/name make up",
            "",
        ]
    if choice.source is Source.LOCAL and not choice.demonstration:
        return []
    if choice.source is Source.NONE:
        about = [
            "  [bold yellow]No judge is configured[/], and the local demonstration judge is not installed:",
            "  every run fails with `not_configured`.",
        ]
    else:
        about = [
            "  [bold yellow]This judge is a demonstration.[/] Its 135 million parameters show the whole path offline,",
            "  but its verdicts are near chance.",
        ]
    return [*about, "  For scores worth having, stop this and start it again with one of", *_better(ollama), ""]


def _better(ollama: str | None) -> list[str]:
    model_id = DEFAULT_MODELS[0]
    choices = [f"export {key_variable(model_id)}=... ASSAY_JUDGE_MODEL={model_id}; make up"]
    if ollama:
        choices.append(f"ASSAY_JUDGE_MODEL={ollama} make up   (found on this machine)")
    choices.append("ASSAY_LOCAL_MODEL=/path/to/model.gguf make up")
    return [f"    {escape(choice)}" for choice in choices]
