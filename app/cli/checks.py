"""What `assay doctor` looks at, each check a function that returns findings and never raises.

Imports what a server does: `assay doctor` loads this when it runs, so that the other commands need not.
"""

import asyncio
import platform
from collections import Counter
from collections.abc import Mapping
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from app import __version__
from app.adapters.clock import SystemClock
from app.adapters.embedded_valkey import running_valkey_url
from app.adapters.judge_models import load_models
from app.adapters.redis_client import REDIS_ERRORS, connect
from app.adapters.redis_server import RedisServer
from app.adapters.rq_queue import RqRunQueue
from app.adapters.standing_scorers import standing_scorers
from app.cli.finding import Finding, Level
from app.cli.judge_choice import Source, choose_judge
from app.cli.plan import url_of
from app.domain.errors import AssayError
from app.observe.metrics import PrometheusTelemetry
from app.ports import ChatModel, Prompt
from app.settings import Settings, SettingsError, environment, load_settings

LOOK_TIMEOUT_S = 3.0
JUDGE_TIMEOUT_S = 30.0
TINY_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


async def look() -> list[Finding]:
    """Look at everything; without readable settings at nothing else."""
    try:
        settings = load_settings()
    except SettingsError as error:
        return [*versions(), *(Finding(Level.FAIL, "settings", line) for line in str(error).splitlines())]
    looks = (redis(settings), service(settings), judge(settings, environment()))
    found = [*await asyncio.gather(*looks), scorers(settings)]
    return [*versions(), Finding(Level.OK, "settings", "all readable"), *(one for some in found for one in some)]


def versions() -> list[Finding]:
    """Which Assay, Python and system."""
    detail = f"Assay {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return [Finding(Level.OK, "versions", detail)]


def scorers(settings: Settings) -> list[Finding]:
    """Whether the scorers of files and packages can be used, and how many there are."""
    try:
        offers = standing_scorers(settings.scorers_dir).values()
    except SettingsError as error:
        return [Finding(Level.FAIL, "scorers", line) for line in str(error).splitlines()]
    counts = Counter(offer.origin.value for offer in offers)
    return [Finding(Level.OK, "scorers", ", ".join(f"{count} {origin}" for origin, count in counts.items()))]


async def service(settings: Settings) -> list[Finding]:
    """Whether an API answers where the settings say, and what it says of itself: Redis, workers, judge."""
    url = url_of(settings.host, settings.port)
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=LOOK_TIMEOUT_S) as client:
            answer = await client.get(f"{url}/readyz")
            checks: list[dict[str, Any]] = answer.json()["checks"]
    except httpx.TransportError:
        silent = Finding(Level.WARN, "service", f"nothing answers at {url}; `assay up` starts it")
        return [silent, *await _workers(settings)]
    except (ValueError, LookupError, TypeError):
        return [Finding(Level.FAIL, "service", f"what answers at {url} is not Assay; set ASSAY_PORT to a free port")]
    found = [Finding(Level.OK, "service", f"answers at {url}")]
    for check in checks:
        level = Level.OK if check["ok"] else Level.FAIL if check["needed"] else Level.WARN
        found.append(Finding(level, f"service: {check['name']}", check["detail"]))
    return found


async def _workers(settings: Settings) -> list[Finding]:
    """Whether a worker is alive, as Redis has it; nothing when no Redis can say."""
    try:
        given = settings.redis_url
        url = running_valkey_url(settings.data_dir) if given is None else given.get_secret_value()
        if url is None:
            return []
        async with connect(url) as client:
            alive = await RqRunQueue(client, limit=settings.queue_limit).workers()
    except (SettingsError, AssayError, OSError):
        return []
    if alive:
        return [Finding(Level.OK, "workers", f"{alive} alive")]
    return [Finding(Level.WARN, "workers", "no worker is alive: queued runs wait until one starts")]


async def redis(settings: Settings) -> list[Finding]:
    """Whether the configured Redis answers, is new enough, and neither forgets nor evicts runs."""
    if settings.redis_url is None:
        return [Finding(Level.OK, "redis", f"the embedded Valkey in {settings.data_dir / 'valkey'}")]
    found = await _server(settings.redis_url.get_secret_value(), "ASSAY_REDIS_URL", keeps_runs=True)
    if settings.cache_redis_url is not None:
        found += await _server(settings.cache_redis_url.get_secret_value(), "ASSAY_CACHE_REDIS_URL", keeps_runs=False)
    return found


async def _server(url: str, variable: str, *, keeps_runs: bool) -> list[Finding]:
    try:
        client = connect(url, variable=variable)
    except SettingsError as error:
        return [Finding(Level.FAIL, "redis", str(error))]
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            server = RedisServer.of(await client.info())
    except REDIS_ERRORS as error:
        return [Finding(Level.FAIL, "redis", f"{variable} does not answer ({type(error).__name__})")]
    finally:
        await client.aclose()
    found = [_age(server, variable)]
    if keeps_runs:
        found += [_eviction(server), _persistence(server)]
    return found


def _age(server: RedisServer, variable: str) -> Finding:
    if server.too_old:
        detail = f"{variable}: version {server.version} is too old; Redis 6.2 or Valkey is needed"
        return Finding(Level.FAIL, "redis", detail)
    return Finding(Level.OK, "redis", f"{variable} answers, version {server.version}")


def _eviction(server: RedisServer) -> Finding:
    policy = server.policy
    if server.evicts:
        return Finding(Level.FAIL, "redis: eviction", f"{policy} may drop runs; set maxmemory-policy noeviction")
    if server.might_evict:
        return Finding(Level.WARN, "redis: eviction", f"{policy}; set maxmemory-policy noeviction before any maxmemory")
    return Finding(Level.OK, "redis: eviction", policy)


def _persistence(server: RedisServer) -> Finding:
    if server.appends:
        return Finding(Level.OK, "redis: persistence", "append-only file")
    return Finding(Level.WARN, "redis: persistence", "a restart loses runs; set appendonly yes")


async def judge(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """Which judge there is, and whether it answers one tiny call."""
    try:
        choice = choose_judge(settings, environ)
        if choice.source is Source.NONE:
            return [Finding(Level.FAIL, "judge", "none; set ASSAY_JUDGE_MODEL to provider/name, or ASSAY_MODELS_FILE")]
        if choice.local:
            kind = "the demonstration judge" if choice.demonstration else "a local judge"
            return [Finding(Level.OK, "judge", f"`assay up` brings {kind}, {choice.model_id}")]
        chosen = settings.model_copy(update={"judge_model": choice.model_id})
        models = load_models(chosen, SystemClock(), PrometheusTelemetry(CollectorRegistry(), scorers=()))
    except SettingsError as error:
        return [Finding(Level.FAIL, "judge", line) for line in str(error).splitlines()]
    try:
        return [await _answers(models.get(model_id)) for model_id in models.ids]
    finally:
        await models.aclose()


async def _answers(model: ChatModel) -> Finding:
    prompt = Prompt(
        system="Answer with JSON only.",
        user='Answer {"ok": true}.',
        schema=TINY_SCHEMA,
        name="doctor",
        max_tokens=min(256, model.max_output_tokens),
    )
    clock = SystemClock()
    started = clock.monotonic()
    try:
        answer = await model.complete(prompt, deadline=started + JUDGE_TIMEOUT_S)
    except AssayError as error:
        return Finding(Level.FAIL, "judge", f"{model.id}: {error.detail}")
    if answer.model != model.id:
        return Finding(Level.WARN, "judge", f"{model.id} is not available; its fallback {answer.model} answered")
    return Finding(Level.OK, "judge", f"{model.id} answered in {clock.monotonic() - started:.1f} s")
