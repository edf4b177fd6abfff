"""A worker process for tests, whose runs do what their ids say and note it in Redis.

`run-hold-…` waits until the key `go` exists, any other run returns at once. Lists `begun` and `ended` hold run ids.
"""

import asyncio
import os

from redis.asyncio import Redis

from worker.worker import AsyncWorker

LOOK_AGAIN_S = 0.02


def main() -> None:
    url = os.environ["TEST_REDIS_URL"]
    # With a socket timeout redis-py waits by asyncio.wait_for, which swallows cancellations in Python 3.11.
    notes = Redis.from_url(url, socket_timeout=None)

    async def execute(tenant: str, run_id: str) -> None:
        await notes.rpush("begun", run_id)
        while run_id.startswith("run-hold") and not await notes.exists("go"):  # noqa: ASYNC110 - it is set elsewhere
            await asyncio.sleep(LOOK_AGAIN_S)
        await notes.rpush("ended", run_id)

    worker = AsyncWorker(
        ["assay-high", "assay-normal", "assay-bulk"],
        url=url,
        execute=execute,
        concurrency=int(os.environ["TEST_CONCURRENCY"]),
        grace=float(os.environ["TEST_GRACE_S"]),
    )
    worker.work()


if __name__ == "__main__":
    main()
