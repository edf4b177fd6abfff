"""Looks at the queue in the background, so that a scrape never waits for Redis."""

import asyncio

from app.domain.errors import AssayError
from app.observe.metrics import QueueMetrics
from app.ports import RunQueue

EVERY_S = 5.0
LOOK_S = 1.0


async def watch_queue(queue: RunQueue, metrics: QueueMetrics, every_s: float = EVERY_S) -> None:
    """Refresh the queue's gauges until cancelled."""
    while True:
        await look_at_queue(queue, metrics)
        await asyncio.sleep(every_s)


async def look_at_queue(queue: RunQueue, metrics: QueueMetrics) -> None:
    """Refresh the queue's gauges once, or mark them unknown when the queue does not answer within a second."""
    try:
        async with asyncio.timeout(LOOK_S):
            looks = queue.depth(), queue.workers(), queue.last_beat_s()
            depth, workers, beat_age_s = await asyncio.gather(*looks)
    except (AssayError, TimeoutError):
        metrics.unseen()
        return
    metrics.seen(depth, workers, beat_age_s)
