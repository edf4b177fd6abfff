"""`assay up`: Redis, a judge, the API and the workers on this machine, until Ctrl-C."""

import asyncio
import os
from pathlib import Path

import typer
from pydantic import SecretStr

from app.cli.banner import describe, show_ready
from app.cli.child import Child, Command
from app.cli.console import err, say
from app.cli.embedded import KeptValkey
from app.cli.judge_choice import JudgeChoice, Source, choose_judge, find_ollama
from app.cli.plan import make_plan
from app.cli.readiness import Readiness
from app.cli.supervisor import StartFailed, StopSignals, Supervisor
from app.listening import listening_socket
from app.settings import Settings, SettingsError, environment, load_settings


def up() -> None:
    """Run Assay here: API, workers, Redis and a judge; Ctrl-C ends it all."""
    settings = load_settings()
    listening_socket(settings.host, settings.port).close()
    choice = choose_judge(settings, environment())
    try:
        asyncio.run(_run(settings, choice))
    except StartFailed as failure:
        say(str(failure))
        for line in failure.last_words:
            err.print(f"  {line}", markup=False)
        raise typer.Exit(failure.exit_code) from None


async def _run(settings: Settings, choice: JudgeChoice) -> None:
    stop = StopSignals()
    logs = _fresh_logs(settings.data_dir)
    if settings.redis_url is not None:
        await _refuse_unfit(settings.redis_url)
        await _run_processes(settings, choice, settings.redis_url.get_secret_value(), logs, stop)
        return
    valkey = await KeptValkey.start(settings.data_dir, say)
    keeper = asyncio.create_task(valkey.keep_running())
    try:
        await _run_processes(settings, choice, valkey.url, logs, stop)
    finally:
        keeper.cancel()
        await valkey.stop()


async def _refuse_unfit(redis_url: SecretStr) -> None:
    """Raise SettingsError here, and not in every process, when this Redis may lose runs; tell when it is away."""
    from app.adapters.redis_client import REDIS_ERRORS, connect  # noqa: PLC0415 - keeps the other commands quick
    from app.adapters.redis_server import refuse_unfit  # noqa: PLC0415

    async with connect(redis_url) as client:
        try:
            await client.ping()
        except REDIS_ERRORS as error:
            say(f"Redis does not answer ({type(error).__name__}) and is waited for; see ASSAY_REDIS_URL")
            return
        await refuse_unfit(client)


async def _run_processes(
    settings: Settings, choice: JudgeChoice, redis_url: str, logs: Path, stop: StopSignals
) -> None:
    plan = make_plan(settings, choice, redis_url, os.environ)

    def child(command: Command) -> Child:
        return Child(command, logs / f"{command.name}.log", say)

    judges = [child(plan.judge)] if plan.judge else []
    api, workers = child(plan.api), [child(command) for command in plan.workers]
    supervisor = Supervisor([*judges, api, *workers], ending_order=([api], workers, judges), stop=stop)
    supervisor.start()
    try:
        ollama = await asyncio.to_thread(find_ollama)
        async with Readiness(plan, judge_expected=choice.source is not Source.NONE) as readiness:
            ready = await supervisor.wait_until_ready(readiness.look)
        if ready:
            places = describe(settings, choice, plan, [*judges, api, *workers])
            show_ready(plan.url, places, choice, ollama, logs)
            await supervisor.run_until_stopped()
    finally:
        if stop.first.is_set():
            say("Stopping: what is under way is finished first. Ctrl-C again ends it at once.")
        await supervisor.end()


def _fresh_logs(data_dir: Path) -> Path:
    """Return the folder of the logs, last time's logs kept under another name."""
    logs = data_dir / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
        for log in logs.glob("*.log"):
            log.replace(log.with_suffix(".log.1"))
    except OSError as error:
        raise SettingsError(f"ASSAY_DATA_DIR: the directory can't be used ({error.strerror})") from None
    return logs
