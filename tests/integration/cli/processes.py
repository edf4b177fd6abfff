"""Waiting for processes."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 30.0


async def until(happened: Callable[[], bool]) -> None:
    """Wait for something that only another process can bring about."""
    async with asyncio.timeout(PATIENCE_S):
        while not happened():  # noqa: ASYNC110 - no event of ours tells of it
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
