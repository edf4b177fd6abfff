"""Why a run that would have been lost goes on, or is ended: counted and logged wherever it happens."""

from enum import StrEnum

import structlog

from app.runs.deps import Deps

log = structlog.get_logger()


class Reason(StrEnum):
    """What saved a run."""

    LEASE_EXPIRED = "lease_expired"
    """It was taken over from a holder whose lease had ended."""
    JOB_REQUEUED = "job_requeued"
    """The queue's job of a dead worker was put back."""
    JOB_LOST = "job_lost"
    """It had no job in the queue, and got one."""
    OVERDUE = "overdue"
    """It was found past its deadline, and ended."""
    GIVEN_BACK = "given_back"
    """A process that stops, or no longer waits for it, gave it back."""
    ATTEMPTS_SPENT = "attempts_spent"
    """It was lost too often, and ended as failed."""
    FINISHED_LATE = "finished_late"
    """Its end was written after an outage of the store."""


def tell_recovery(deps: Deps, reason: Reason, run_id: str) -> None:
    """Count and log that a run was saved."""
    deps.telemetry.run_recovered(reason)
    # Giving back is part of every stop; all else means that something went wrong.
    tell = log.info if reason is Reason.GIVEN_BACK else log.warning
    tell("run_recovered", run_id=run_id, reason=reason)
