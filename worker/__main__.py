"""`python -m worker`: one worker process, in the foreground, until SIGTERM or SIGINT.

While Redis does not answer or takes no writes at the start, it waits. Exit codes: 0 stopped, 1 Redis refuses us or went
away again just then, 2 a setting is wrong.
"""

import asyncio
import gc
import sys

import structlog
import uvloop
from redis.exceptions import AuthenticationError

from app.adapters.backoff import Backoff
from app.adapters.redis_client import REDIS_ERRORS
from app.adapters.rq_queue import QUEUES
from app.domain.errors import StoreUnavailable
from app.observe.log import configure_logging
from app.observe.metrics import WorkerMetrics
from app.ports import RunKey
from app.runs.execute import execute_queued_run
from app.runs.recovery import Reason
from app.runs.sweep import keep_sweeping
from app.settings import Settings, SettingsError, load_settings
from app.wiring import Wired, build_deps
from worker.jobs import slot
from worker.metrics import serve_metrics
from worker.worker import AsyncWorker

log = structlog.get_logger()


async def work(settings: Settings) -> None:
    """Execute queued runs until stopped; raises SettingsError, and a redis error when Redis refuses us."""
    async with build_deps(settings) as wired:
        with serve_metrics(settings.host, settings.worker_metrics_port, wired.registry) as port:
            log.info("metrics_served", port=port)
            metrics = WorkerMetrics(wired.registry)
            worker = await _worker_when_redis_answers(settings, wired, metrics)
            gc.freeze()
            sweeping = asyncio.create_task(keep_sweeping(wired.deps))
            try:
                await worker.run()
            finally:
                sweeping.cancel()


async def _worker_when_redis_answers(settings: Settings, wired: Wired, metrics: WorkerMetrics) -> AsyncWorker:
    backoff = Backoff()
    while True:
        try:
            worker = await asyncio.to_thread(_make_worker, settings, wired, metrics)
            # A full server and a replica answer all the same, and then refuse the worker's entry.
            await wired.deps.store.ping()
        except AuthenticationError:
            raise
        except (StoreUnavailable, *REDIS_ERRORS) as error:
            log.warning("waiting_for_redis", error=type(error.__cause__ or error).__name__)
            await asyncio.sleep(backoff.pause_s())
        else:
            return worker


def _make_worker(settings: Settings, wired: Wired, metrics: WorkerMetrics) -> AsyncWorker:
    async def execute(tenant: str, run_id: str) -> None:
        await execute_queued_run(wired.deps, RunKey(tenant, run_id), slot.get())

    def count_recovered(jobs: int) -> None:
        for _ in range(jobs):
            wired.deps.telemetry.run_recovered(Reason.JOB_REQUEUED)

    return AsyncWorker(
        list(QUEUES.values()),
        url=wired.redis_url,
        execute=execute,
        concurrency=settings.worker_concurrency,
        grace=settings.worker_grace_s,
        on_beat=metrics.beaten,
        on_recovered=count_recovered,
    )


def main(settings: Settings | None = None) -> None:
    """Run a worker, by default with the environment's settings; exits with one line when it can't start."""
    try:
        settings = settings or load_settings()
        configure_logging(settings.log_level)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work(settings))
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the one line an operator gets
        sys.exit(2)
    except REDIS_ERRORS as error:
        print(f"Redis can't be used ({type(error).__name__}); see ASSAY_REDIS_URL", file=sys.stderr)  # noqa: T201
        sys.exit(1)


if __name__ == "__main__":
    main()
