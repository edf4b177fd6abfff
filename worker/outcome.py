"""Run one job to whatever end it comes, told in codes: no text of a caller or of a judge reaches RQ."""

import asyncio
from typing import NamedTuple

import redis
import structlog
from rq.serializers import JSONSerializer

from app.domain.errors import AssayError, ErrorCode
from worker.bookkeeping import Outcome, Taken
from worker.jobs import AllowedJob, JobRefused, execute

log = structlog.get_logger()


class Verdict(NamedTuple):
    """How a job ended, and the code of its failure ("" when it did not fail)."""

    outcome: Outcome
    code: str = ""


async def run_job(taken: Taken, connection: redis.Redis) -> Verdict:
    """Execute a taken job within its timeout; raises nothing but the CancelledError that somebody asked for."""
    job = AllowedJob(taken.job_id, connection=connection, serializer=JSONSerializer)
    try:
        job.restore(taken.fields)
    except JobRefused as refusal:
        log.warning("job_refused", job_id=taken.job_id, queue=taken.queue, why=str(refusal))
        return Verdict(Outcome.REFUSED, "job_refused")
    limit = asyncio.timeout(job.timeout)
    try:
        async with limit:
            await execute(*job.args)
    except TimeoutError as error:
        return _failed(taken, "job_timeout" if limit.expired() else ErrorCode.INTERNAL, error)
    except AssayError as error:
        return _failed(taken, error.code, error)
    except asyncio.CancelledError as error:
        if _is_asked_for():
            raise
        return _failed(taken, ErrorCode.INTERNAL, error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a bug in one job, or a panic in Rust, must not end the others
        return _failed(taken, ErrorCode.INTERNAL, error)
    return Verdict(Outcome.DONE)


def _is_asked_for() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failed(taken: Taken, code: str, error: BaseException) -> Verdict:
    log.error("job_failed", job_id=taken.job_id, queue=taken.queue, code=str(code), exc_info=error)
    return Verdict(Outcome.FAILED, str(code))
