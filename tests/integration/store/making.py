"""What the store's tests make and look at."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

from redis.asyncio import Redis

from app.domain.request import MetadataValue, RunRequest
from app.domain.run import Direction, Run, RunStatus
from app.ports import NewRun, RunKey

RUN_TTL_S = 3600
TEXT = "The quarterly figures of the lemonade stand are remarkable."


def run_maker() -> Callable[..., NewRun]:
    """Return a function that makes queued runs, each a second younger than the one before."""
    numbers = count()
    start = datetime.now(UTC)

    def make(
        run_id: str | None = None,
        *,
        tenant: str = "default",
        scorer_id: str = "bias",
        metadata: dict[str, MetadataValue] | None = None,
        created_at: datetime | None = None,
        fingerprint: str = "f" * 64,
        idempotency_key: str | None = None,
    ) -> NewRun:
        number = next(numbers)
        key = RunKey(tenant, run_id or f"run-{number:06d}")
        created = created_at or start + timedelta(seconds=number)
        run = Run(
            run_id=key.run_id,
            scorer_id=scorer_id,
            scorer_version="1",
            status=RunStatus.QUEUED,
            direction=Direction.LOWER_IS_BETTER,
            model="stub/judge",
            metadata=metadata or {},
            created_at=created,
            expires_at=created + timedelta(seconds=RUN_TTL_S),
        )
        request = RunRequest(scorer_id=scorer_id, output=TEXT, options={}, model="stub/judge", timeout_ms=60_000)
        return NewRun(key=key, run=run, request=request, fingerprint=fingerprint, idempotency_key=idempotency_key)

    return make


def ended(run: Run, status: RunStatus = RunStatus.COMPLETED) -> Run:
    """Return the run as it is at its end, with TEXT in it."""
    return run.model_copy(update={"status": status, "completed_at": datetime.now(UTC), "reason": TEXT})


async def everything(client: Redis) -> str:
    """Return all keys and all values of the server as one text."""
    parts: list[bytes] = []
    readers = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"stream": client.xrange,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
    }
    async for key in client.scan_iter():
        parts += [key, repr(await readers[await client.type(key)](key)).encode()]
    return b"\n".join(parts).decode()
