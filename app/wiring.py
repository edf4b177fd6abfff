"""The only place where adapters are chosen."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from app.adapters.clock import SystemClock
from app.adapters.embedded_valkey import start_valkey
from app.adapters.judge_models import load_models
from app.adapters.redis_cache import RedisAnswerCache
from app.adapters.redis_client import connect
from app.adapters.redis_definitions import RedisDefinitionStore
from app.adapters.redis_notifier import RedisNotifier
from app.adapters.redis_runs import RedisRunStore
from app.adapters.redis_server import refuse_unfit
from app.adapters.rq_queue import RqRunQueue
from app.adapters.standing_scorers import standing_scorers
from app.domain.errors import AssayError
from app.domain.readiness import ReadinessCheck
from app.observe.exposition import make_registry
from app.observe.metrics import PrometheusTelemetry
from app.runs.catalog import Catalog
from app.runs.deps import Deps, RunPolicy
from app.runs.steadiness import Steadiness
from app.settings import Settings

CHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class Wired:
    """A process's adapters, alive while `build_deps` is entered."""

    deps: Deps
    registry: CollectorRegistry
    redis_url: str = field(repr=False)

    async def check(self) -> list[ReadinessCheck]:
        """Look at what the process depends on; takes at most a second and never raises."""
        store, workers = await asyncio.gather(_answers(self.deps.store.ping()), self._workers())
        model = self.deps.models.default
        hint = "set ASSAY_JUDGE_MODEL or ASSAY_MODELS_FILE"
        return [
            ReadinessCheck(name="redis", ok=store is None, needed=True, detail=store or "answers"),
            workers,
            ReadinessCheck(name="judge", ok=model is not None, needed=True, detail=model or hint),
        ]

    async def _workers(self) -> ReadinessCheck:
        try:
            async with asyncio.timeout(CHECK_S):
                alive = await self.deps.queue.workers()
        except (AssayError, TimeoutError):
            detail = "unknown, since Redis does not answer"
            return ReadinessCheck(name="workers", ok=False, needed=False, detail=detail)
        detail = f"{alive} alive" if alive else "no worker is alive: queued runs wait until one starts"
        return ReadinessCheck(name="workers", ok=alive > 0, needed=False, detail=detail)


async def _answers(ping: Awaitable[None]) -> str | None:
    try:
        async with asyncio.timeout(CHECK_S):
            await ping
    except AssayError as error:
        return error.detail
    except TimeoutError:
        return "does not answer within a second"
    return None


@asynccontextmanager
async def build_deps(settings: Settings, registry: CollectorRegistry | None = None) -> AsyncIterator[Wired]:
    """Make every adapter a process needs and close them in reverse at the end.

    Without ASSAY_REDIS_URL the embedded Valkey is started, or joined when another process runs it. Raises
    SettingsError when a setting is wrong, or Redis one that may lose runs.
    """
    registry = registry or make_registry()
    standing = standing_scorers(settings.scorers_dir)
    clock = SystemClock()
    telemetry = PrometheusTelemetry(registry, scorers=tuple(standing))
    async with AsyncExitStack() as stack:
        url = await _redis_url(settings, stack)
        runs_client = connect(url)
        stack.push_async_callback(runs_client.aclose)
        models = load_models(settings, clock, telemetry, client=runs_client)
        stack.push_async_callback(models.aclose)
        models.start()
        await refuse_unfit(runs_client)
        cache_client = runs_client
        if settings.cache_redis_url is not None:
            cache_client = connect(settings.cache_redis_url, variable="ASSAY_CACHE_REDIS_URL")
            stack.push_async_callback(cache_client.aclose)
        notifier = RedisNotifier(connect(url))
        stack.push_async_callback(notifier.aclose)
        await notifier.start()
        deps = Deps(
            scorers=Catalog(standing, RedisDefinitionStore(runs_client)),
            models=models,
            cache=RedisAnswerCache(cache_client, ttl_s=settings.cache_ttl, clock=clock, telemetry=telemetry),
            store=RedisRunStore(runs_client, run_ttl_s=settings.run_ttl, idempotency_ttl_s=settings.idempotency_ttl),
            queue=RqRunQueue(runs_client, limit=settings.queue_limit),
            notifier=notifier,
            clock=clock,
            telemetry=telemetry,
            policy=RunPolicy(
                run_ttl_s=settings.run_ttl,
                run_timeout_ms=settings.run_timeout_ms,
                inline_wait_s=settings.inline_wait_s,
                lease_s=settings.run_lease_s,
            ),
            steadiness=Steadiness(settings.run_lease_s, max_gap_s=2 * settings.run_lease_s / 3),
        )
        stack.callback(deps.computing.shutdown, wait=False, cancel_futures=True)
        yield Wired(deps=deps, registry=registry, redis_url=url)


async def _redis_url(settings: Settings, stack: AsyncExitStack) -> str:
    if settings.redis_url is not None:
        return settings.redis_url.get_secret_value()
    valkey = await asyncio.to_thread(start_valkey, settings.data_dir)
    stack.push_async_callback(asyncio.to_thread, valkey.stop)
    return valkey.url
