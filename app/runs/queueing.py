"""Put stored runs in line, each among those of its caller."""

import hashlib
import hmac

from app.domain.request import RunRequest
from app.domain.run import Run
from app.ports import RunKey
from app.runs.deps import Deps

JOB_MARGIN_S = 10.0


async def enqueue(deps: Deps, key: RunKey, run: Run, request: RunRequest, *, if_room: bool = False) -> None:
    """Put a stored run in line; its job may take a little longer than the run, which ends itself at its deadline.

    A run that waits already keeps its place. Raises StoreUnavailable, CapacityReduced with `if_room` when it is full.
    """
    left = deps.policy.run_timeout_ms / 1000
    if run.deadline_at is not None:
        left = max((run.deadline_at - deps.clock.now()).total_seconds(), 0.0)
    await deps.queue.enqueue(key, request.priority, left + JOB_MARGIN_S, caller=request.caller, if_room=if_room)


async def caller_digest(deps: Deps, tenant: str, caller: bytes) -> str:
    """Return the name of a caller in the queue: 64 bits that tell nobody a key or an address. Raises StoreUnavailable.

    `caller` is what the caller is known by. The secret of the installation goes in, so that guesses can't be checked.
    """
    secret = await deps.store.fence_key()
    return hmac.digest(secret, b"caller\0" + tenant.encode() + b"\0" + caller, hashlib.sha256)[:8].hex()
