"""A process that asks the cache, for tests of more than one: argv is the URL, the key and how many callers.

Prints `ready`, starts at a line of input, and prints each caller's source. What it asks is counted in Redis as `asked`.
"""

import asyncio
import sys

from app.adapters.clock import SystemClock
from app.adapters.redis_cache import RedisAnswerCache
from app.adapters.redis_client import connect
from app.domain.request import CacheMode
from tests.integration.store.counts import Counts

ASK_S = 0.5


async def main(url: str, key: str, callers: int) -> None:
    client = connect(url)
    cache = RedisAnswerCache(client, ttl_s=60, clock=SystemClock(), telemetry=Counts())

    async def ask() -> bytes:
        await client.incr("asked")
        await asyncio.sleep(ASK_S)
        return b"answer"

    await client.ping()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    answers = await asyncio.gather(*(cache.answer(key, CacheMode.USE, ask) for _ in range(callers)))
    await client.aclose()
    print(*(answer.source.value for answer in answers if answer.value == b"answer"), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
