"""The one job there is, and the class that loads no other.

RQ's JSON serializer does not stop code execution: a job names any importable function, and more of them as callbacks.
Whoever can write to Redis could make a worker call `os.system`. So a job that is not exactly what `RqRunQueue` writes
is refused while it is loaded.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

from rq.exceptions import NoSuchJobError
from rq.job import Job

from app.adapters.rq_queue import FAILURE_TTL_S, JOB_FUNCTION, MAX_RETRIES
from app.ports import Slot

Execute = Callable[[str, str], Awaitable[None]]

# A run's ids fit many times over; a packed megabyte that unpacks to a gigabyte does not.
MAX_DATA_BYTES = 2_048
MAX_ID_CHARACTERS = 200

executor: ContextVar[Execute] = ContextVar("executor")
slot: ContextVar[Slot | None] = ContextVar("slot", default=None)
"""The place of the job that is executed in this context."""


async def execute(tenant: str, run_id: str) -> None:
    """Execute a run with what this context's worker was given for it."""
    await executor.get()(tenant, run_id)


class JobRefused(NoSuchJobError):
    """This is not a job of ours. To RQ, which would otherwise go on with it, there is no such job."""


class AllowedJob(Job):
    """A job that calls `execute` with a tenant and a run id, and does nothing else at any time."""

    def restore(self, raw_data: Mapping[bytes, bytes]) -> None:
        """Load the job from its hash; raises JobRefused, which tells nothing of what is in it."""
        if len(raw_data.get(b"data", b"")) > MAX_DATA_BYTES:
            raise JobRefused("The job's data is too long")
        try:
            super().restore(raw_data)
            allowed = self._is_plain() and self._is_bounded() and self._calls_execute()
        except Exception:  # noqa: BLE001 - whatever its bytes did to RQ's parsers, it is not a job of ours
            allowed = False
        if not allowed:
            raise JobRefused("The job is not one that Assay enqueued") from None

    def _is_plain(self) -> bool:
        return not any(
            (
                self._success_callback_name,
                self._failure_callback_name,
                self._stopped_callback_name,
                self.webhooks,
                self._dependency_ids,
                self.group_id,
                self.repeats_left,
                self.rate_limit_key,
                self.meta,
                self._result,
            )
        )

    def _is_bounded(self) -> bool:
        return (
            self.result_ttl == 0
            and 0 < (self.failure_ttl or 0) <= FAILURE_TTL_S
            and 0 <= (self.retries_left or 0) <= MAX_RETRIES
            and (self.timeout or 0) > 0
        )

    def _calls_execute(self) -> bool:
        return (
            self.func_name == JOB_FUNCTION
            and self.instance is None
            and self.kwargs == {}
            and isinstance(self.args, list)
            and len(self.args) == 2
            and all(_is_id(arg) for arg in self.args)
        )


def _is_id(arg: Any) -> bool:
    return isinstance(arg, str) and 0 < len(arg) <= MAX_ID_CHARACTERS
