"""The prompt/response cache: what is asked once, what is never stored, and what an outage costs."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.adapters import redis_cache
from app.adapters.embedded_valkey import EmbeddedValkey
from app.adapters.redis_cache import RedisAnswerCache
from app.adapters.redis_client import connect
from app.domain.errors import (
    ContextOverflow,
    EmptyReply,
    JudgeRefused,
    JudgeTimeout,
    JudgeUnavailable,
    NotConfigured,
    TruncatedReply,
)
from app.domain.request import CacheMode
from app.ports import CachedAnswer, Source
from tests.integration.store.counts import Counts

pytestmark = pytest.mark.anyio

ASKER = Path(__file__).with_name("asker.py")
KEY = "some-key"
SHARED_ERRORS = [
    JudgeTimeout,
    JudgeUnavailable,
    JudgeRefused,
    EmptyReply,
    TruncatedReply,
    ContextOverflow,
    NotConfigured,
]


class HeldClock:
    """Clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return self.seconds


class Judge:
    """What is asked: counts the questions, and answers when it is let."""

    def __init__(self, *answers: bytes | BaseException, held: bool = False) -> None:
        self.answers = list(answers) or [b"answer"]
        self.asked = 0
        self.begun = asyncio.Event()
        self.let = asyncio.Event()
        if not held:
            self.let.set()

    async def __call__(self) -> bytes:
        self.asked += 1
        self.begun.set()
        await self.let.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
async def make_cache(
    valkey_url: str, clock: HeldClock, counts: Counts
) -> AsyncIterator[Callable[..., RedisAnswerCache]]:
    """Make caches that share nothing but the server, as those of two processes do."""
    clients: list[Redis] = []

    def make(url: str = valkey_url) -> RedisAnswerCache:
        clients.append(connect(url))
        return RedisAnswerCache(clients[-1], ttl_s=60, clock=clock, telemetry=counts)

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
def cache(make_cache: Callable[..., RedisAnswerCache]) -> RedisAnswerCache:
    return make_cache()


async def settle() -> None:
    """Let every task run until it waits for something from outside."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_was_asked_is_not_asked_again(cache: RedisAnswerCache, make_cache, counts: Counts):
    judge = Judge()
    assert await cache.answer(KEY, CacheMode.USE, judge) == CachedAnswer(b"answer", Source.LLM)
    for another in (cache, make_cache()):
        assert await another.answer(KEY, CacheMode.USE, judge) == CachedAnswer(b"answer", Source.CACHE)
    assert judge.asked == 1
    assert counts.cache == {"miss": 1, "hit": 2}


async def test_keys_do_not_share(cache: RedisAnswerCache):
    judge = Judge(b"one", b"two")
    assert (await cache.answer("a", CacheMode.USE, judge)).value == b"one"
    assert (await cache.answer("b", CacheMode.USE, judge)).value == b"two"
    assert (await cache.answer("a", CacheMode.USE, judge)).value == b"one"


@pytest.mark.parametrize("value", [b"", b"\x00\xff", b"0", b"1", "字".encode() * 100_000])
async def test_any_bytes_come_back_as_they_were(cache: RedisAnswerCache, value: bytes):
    for source in (Source.LLM, Source.CACHE):
        assert await cache.answer(KEY, CacheMode.USE, Judge(value)) == CachedAnswer(value, source)


async def test_off_neither_reads_nor_writes(cache: RedisAnswerCache, client: Redis, counts: Counts):
    judge = Judge(b"one", b"two")
    assert await cache.answer(KEY, CacheMode.OFF, judge) == CachedAnswer(b"one", Source.LLM)
    assert await client.dbsize() == 0
    await cache.answer(KEY, CacheMode.USE, judge)
    assert await cache.answer(KEY, CacheMode.OFF, Judge(b"three")) == CachedAnswer(b"three", Source.LLM)
    assert await cache.answer(KEY, CacheMode.USE, judge) == CachedAnswer(b"two", Source.CACHE)
    assert counts.cache == {"off": 2, "miss": 1, "hit": 1}


async def test_refresh_asks_and_overwrites(cache: RedisAnswerCache, counts: Counts):
    await cache.answer(KEY, CacheMode.USE, Judge(b"old"))
    assert await cache.answer(KEY, CacheMode.REFRESH, Judge(b"new")) == CachedAnswer(b"new", Source.LLM)
    assert await cache.answer(KEY, CacheMode.USE, Judge(b"never")) == CachedAnswer(b"new", Source.CACHE)
    assert counts.cache == {"miss": 1, "refresh": 1, "hit": 1}


async def test_ten_callers_of_one_process_ask_once(cache: RedisAnswerCache, counts: Counts):
    judge = Judge()
    answers = await asyncio.gather(*(cache.answer(KEY, CacheMode.USE, judge) for _ in range(10)))
    assert judge.asked == 1
    assert [answer.source for answer in answers] == [Source.LLM] + [Source.COALESCED] * 9
    assert counts.cache == {"miss": 1, "coalesced": 9}
    answers = await asyncio.gather(*(cache.answer(KEY, CacheMode.USE, judge) for _ in range(10)))
    assert {answer.source for answer in answers} == {Source.CACHE}
    assert counts.cache["hit"] == 10


@pytest.fixture
def start_asker(valkey_url: str) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    askers: list[subprocess.Popen[str]] = []

    def start(callers: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, ASKER, valkey_url, KEY, str(callers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )
        askers.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in askers:
        process.kill()
        process.communicate()


async def test_ten_callers_of_two_processes_ask_once(start_asker, client: Redis):
    askers = [start_asker(5), start_asker(5)]
    for asker in askers:
        asker.stdin.write("go\n")
        asker.stdin.flush()
    sources = " ".join([asker.stdout.readline() for asker in askers]).split()
    assert sorted(sources) == ["coalesced"] * 9 + ["llm"]
    assert await client.get("asked") == b"1"


async def test_when_the_asking_process_is_killed_another_takes_over(start_asker, make_cache, client: Redis, eventually):
    asker = start_asker(1)
    asker.stdin.write("go\n")
    asker.stdin.flush()

    async def has_asked() -> bool:
        return await client.get("asked") == b"1"

    await eventually(has_asked)
    asker.kill()
    judge = Judge()
    async with asyncio.timeout(15):
        assert await make_cache().answer(KEY, CacheMode.USE, judge) == CachedAnswer(b"answer", Source.LLM)
    assert judge.asked == 1


async def test_a_lock_is_kept_as_long_as_its_asker_asks(make_cache, client: Redis, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(redis_cache, "LOCK_MS", 1_500)
    monkeypatch.setattr(redis_cache, "RENEW_S", 0.1)
    slow, other = Judge(b"slow", held=True), Judge(b"other")
    first = asyncio.create_task(make_cache().answer(KEY, CacheMode.USE, slow))
    await slow.begun.wait()
    second = asyncio.create_task(make_cache().answer(KEY, CacheMode.USE, other))
    await asyncio.wait({second}, timeout=2.0)
    assert not second.done()
    slow.let.set()
    assert await first == CachedAnswer(b"slow", Source.LLM)
    assert await second == CachedAnswer(b"slow", Source.COALESCED)
    assert other.asked == 0
    assert await client.keys("assay:answer-lock:*") == []


@pytest.mark.parametrize("kind", SHARED_ERRORS)
async def test_callers_of_one_process_share_the_judge_s_error_and_nothing_is_stored(
    cache: RedisAnswerCache, client: Redis, kind: type[Exception]
):
    judge = Judge(kind("the judge's fault"), b"better now", held=True)
    tasks = [asyncio.create_task(cache.answer(KEY, CacheMode.USE, judge)) for _ in range(5)]
    await judge.begun.wait()
    judge.let.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [kind] * 5
    assert judge.asked == 1
    assert await client.dbsize() == 0
    assert await cache.answer(KEY, CacheMode.USE, judge) == CachedAnswer(b"better now", Source.LLM)


async def test_after_an_error_in_another_process_the_waiting_one_asks_itself(make_cache):
    failing, working = Judge(JudgeRefused("no"), held=True), Judge(b"yes")
    first = asyncio.create_task(make_cache().answer(KEY, CacheMode.USE, failing))
    await failing.begun.wait()
    second = asyncio.create_task(make_cache().answer(KEY, CacheMode.USE, working))
    failing.let.set()
    with pytest.raises(JudgeRefused):
        await first
    assert await second == CachedAnswer(b"yes", Source.LLM)


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_cancelled_asker_hands_over(make_cache, client: Redis, same_process: bool):
    first_cache = make_cache()
    second_cache = first_cache if same_process else make_cache()
    endless, working = Judge(held=True), Judge(b"yes")
    first = asyncio.create_task(first_cache.answer(KEY, CacheMode.USE, endless))
    await endless.begun.wait()
    others = [asyncio.create_task(second_cache.answer(KEY, CacheMode.USE, working)) for _ in range(3)]
    await settle()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert {answer.value for answer in await asyncio.gather(*others)} == {b"yes"}
    assert working.asked == 1
    assert await client.keys("assay:answer-lock:*") == []


async def test_an_asker_that_dies_of_a_bug_hands_over(cache: RedisAnswerCache):
    broken, working = Judge(KeyError("bug"), held=True), Judge(b"yes")
    first = asyncio.create_task(cache.answer(KEY, CacheMode.USE, broken))
    await broken.begun.wait()
    second = asyncio.create_task(cache.answer(KEY, CacheMode.USE, working))
    await settle()
    broken.let.set()
    with pytest.raises(KeyError):
        await first
    assert await second == CachedAnswer(b"yes", Source.LLM)


async def test_a_cancelled_waiter_disturbs_nobody(cache: RedisAnswerCache):
    judge = Judge(held=True)
    tasks = [asyncio.create_task(cache.answer(KEY, CacheMode.USE, judge)) for _ in range(4)]
    await judge.begun.wait()
    await settle()
    tasks[1].cancel()
    await settle()
    judge.let.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    assert [result.source for n, result in enumerate(results) if n != 1] == [Source.LLM] + [Source.COALESCED] * 2
    assert judge.asked == 1


async def test_cancelling_at_any_moment_leaves_no_lock_and_no_waiter_behind(make_cache, client: Redis):
    first_cache, second_cache = make_cache(), make_cache()
    for turns in range(60):
        tasks = [
            asyncio.create_task(cache.answer(f"key-{turns}", CacheMode.USE, Judge()))
            for cache in (first_cache, first_cache, second_cache)
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks[0].cancel()
        async with asyncio.timeout(10):
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result.value for result in results[1:]] == [b"answer"] * 2
    assert await client.keys("assay:answer-lock:*") == []
    assert [task for task in asyncio.all_tasks() if task.get_name() == redis_cache.LOCK_KEEPER] == []


async def test_replies_that_are_there_are_read_without_a_lock(cache: RedisAnswerCache, client: Redis):
    for number in range(50):
        await cache.answer(f"key-{number}", CacheMode.USE, Judge(str(number).encode()))
    await client.config_resetstat()
    answers = await asyncio.gather(*(cache.answer(f"key-{n}", CacheMode.USE, Judge()) for n in range(50)))
    assert [answer.value for answer in answers] == [str(number).encode() for number in range(50)]
    calls = await client.info("commandstats")
    assert set(calls) - {"cmdstat_info", "cmdstat_config|resetstat"} == {"cmdstat_evalsha", "cmdstat_get"}
    assert calls["cmdstat_get"]["calls"] == 50


async def test_every_key_ends_by_itself(cache: RedisAnswerCache, client: Redis):
    judge = Judge(held=True)
    asking = asyncio.create_task(cache.answer(KEY, CacheMode.USE, judge))
    await cache.answer("other", CacheMode.USE, Judge())
    await cache.answer("third", CacheMode.REFRESH, Judge())
    await judge.begun.wait()
    lives = [await client.ttl(key) async for key in client.scan_iter()]
    assert len(lives) == 3
    assert all(0 < ttl <= 60 for ttl in lives)
    judge.let.set()
    await asking


async def test_forgotten_replies_are_gone(cache: RedisAnswerCache, client: Redis):
    keys = [f"key-{number}" for number in range(1200)]
    await asyncio.gather(*(cache.answer(key, CacheMode.REFRESH, Judge()) for key in [*keys[:3], *keys[-3:], "kept"]))
    await cache.forget(keys)
    assert await client.keys() == [b"assay:answer:{kept}"]
    await cache.forget([])


async def test_an_asker_that_lost_its_lock_leaves_the_new_one_alone(make_cache, client: Redis):
    judge = Judge(held=True)
    asking = asyncio.create_task(make_cache().answer(KEY, CacheMode.USE, judge))
    await judge.begun.wait()
    await client.set("assay:answer-lock:{some-key}", "another's", px=5000)
    judge.let.set()
    await asking
    assert await client.get("assay:answer-lock:{some-key}") == b"another's"


async def test_without_redis_everything_is_asked_once_per_process(make_cache, counts: Counts, tmp_path: Path):
    cache = make_cache(f"unix://{tmp_path}/nothing.sock")
    judge = Judge()
    answers = await asyncio.gather(*(cache.answer(KEY, CacheMode.USE, judge) for _ in range(5)))
    assert [answer.source for answer in answers] == [Source.LLM] + [Source.COALESCED] * 4
    assert judge.asked == 1
    assert await cache.answer(KEY, CacheMode.REFRESH, judge) == CachedAnswer(b"answer", Source.LLM)
    with pytest.raises(JudgeRefused):
        await cache.answer(KEY, CacheMode.USE, Judge(JudgeRefused("no")))
    await cache.forget([KEY])
    assert counts.cache == {"error": 4, "coalesced": 4, "refresh": 1}


async def test_a_frozen_redis_costs_one_wait_and_is_used_again_when_it_is_back(
    make_cache, own_valkey: EmbeddedValkey, clock: HeldClock, counts: Counts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(redis_cache, "PATIENCE_S", 0.2)
    cache = make_cache(own_valkey.url)
    await cache.answer("before", CacheMode.USE, Judge())
    pid = (await cache._client.info("server"))["process_id"]
    sent = count_commands(cache._client, monkeypatch)
    os.kill(pid, signal.SIGSTOP)
    try:
        for step in range(20):
            assert (await cache.answer(f"step-{step}", CacheMode.USE, Judge())).source is Source.LLM
        assert len(sent) == 1
        clock.seconds += redis_cache.AWAY_S
        answers = []
        for step in range(20):
            answers.append(asyncio.create_task(cache.answer(f"again-{step}", CacheMode.USE, Judge())))
            await settle()
        assert {answer.source for answer in await asyncio.gather(*answers)} == {Source.LLM}
        assert len(sent) == 2
    finally:
        os.kill(pid, signal.SIGCONT)
    assert counts.cache == {"miss": 1, "error": 40}
    clock.seconds += redis_cache.AWAY_S
    assert (await cache.answer("before", CacheMode.USE, Judge())).source is Source.CACHE
    await cache.answer("after", CacheMode.USE, Judge())
    assert (await cache.answer("after", CacheMode.USE, Judge())).source is Source.CACHE


def count_commands(client: Redis, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    sent: list[object] = []
    send = client.execute_command

    async def counted(*args, **options):
        sent.append(args[0])
        return await send(*args, **options)

    monkeypatch.setattr(client, "execute_command", counted)
    return sent


async def test_a_reply_that_finds_no_room_is_answered_all_the_same(
    make_cache, own_valkey: EmbeddedValkey, counts: Counts
):
    cache = make_cache(own_valkey.url)
    judge = Judge(held=True)
    asking = asyncio.create_task(cache.answer(KEY, CacheMode.USE, judge))
    await judge.begun.wait()
    await cache._client.config_set("maxmemory", 1)
    judge.let.set()
    assert await asking == CachedAnswer(b"answer", Source.LLM)
    assert counts.cache == {"miss": 1, "error": 1}
