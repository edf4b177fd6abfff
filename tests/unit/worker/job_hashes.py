"""Jobs as Redis holds them and as the bookkeeping hands them out."""

import json
import zlib
from typing import Any

from worker.bookkeeping import Taken


def packed(*call: Any) -> bytes:
    return zlib.compress(json.dumps(call).encode())


def fields(**changes: bytes | None) -> dict[bytes, bytes]:
    """Return the hash of a job as the queue writes it, with changes; None leaves a field out."""
    usual = {
        "created_at": b"2026-11-30T12:00:00.000000Z",
        "data": packed("worker.jobs.execute", None, ["default", "run-00000001"], {}),
        "success_callback_name": b"",
        "failure_callback_name": b"",
        "stopped_callback_name": b"",
        "group_id": b"",
        "status": b"started",
        "origin": b"assay-normal",
        "description": b"run",
        "timeout": b"310",
        "ttl": b"90000",
        "result_ttl": b"0",
        "failure_ttl": b"86400",
        "retries_left": b"2",
        "retry_intervals": b"[0]",
    }
    return {name.encode(): value for name, value in (usual | changes).items() if value is not None}


def taken(run_id: str = "run-00000001", *, timeout_s: int = 310, function: str = "worker.jobs.execute") -> Taken:
    raw = fields(data=packed(function, None, ["default", run_id], {}), timeout=str(timeout_s).encode())
    return Taken(f"job-{run_id}", "assay-normal", f"execution-{run_id}", "2026-11-30T12:00:00.000000Z", 1.0, raw)
