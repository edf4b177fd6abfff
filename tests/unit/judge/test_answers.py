import asyncio
import itertools

import pytest

from app.domain.errors import Internal, JudgeRefused, JudgeTimeout
from app.domain.request import CacheMode
from app.judge.answers import PRIVATE_PREFIX, Answers
from app.ports import CachedAnswer, Prompt, Source
from tests.unit.fakes import DictCache, FakeClock

PROMPT = Prompt("system", "user", {"type": "object"}, "bias_analyze", 512)


def answers(cache: DictCache, **changes: object) -> Answers:
    fields = {
        "cache": cache,
        "clock": FakeClock(),
        "deadline": 2_000.0,
        "about": ("tenant", "judge", "bias", "1", "{}"),
        "run_id": "run-1",
        "mode": CacheMode.USE,
        "kept": True,
        "used_keys": [],
    }
    return Answers(**(fields | changes))  # type: ignore[arg-type]


class Judge:
    """Answers every question with its number."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self) -> bytes:
        self.asked += 1
        return str(self.asked).encode()


def any_text(stored: bytes) -> str | None:
    return stored.decode() or None


@pytest.mark.anyio
async def test_use_shares_with_other_runs() -> None:
    cache, judge = DictCache(), Judge()
    first, second = answers(cache), answers(cache, run_id="run-2")
    assert await first.get(PROMPT, judge, any_text) == ("1", Source.LLM)
    assert await second.get(PROMPT, judge, any_text) == ("1", Source.CACHE)
    assert first.used_keys == second.used_keys == list(cache.stored)
    assert not first.used_keys[0].startswith(PRIVATE_PREFIX)


@pytest.mark.anyio
async def test_off_shares_with_the_same_run_only() -> None:
    cache, judge = DictCache(), Judge()
    await answers(cache).get(PROMPT, judge, any_text)
    off = answers(cache, mode=CacheMode.OFF)
    assert await off.get(PROMPT, judge, any_text) == ("2", Source.LLM)
    assert await off.get(PROMPT, judge, any_text) == ("2", Source.CACHE)
    assert await answers(cache, mode=CacheMode.OFF, run_id="run-2").get(PROMPT, judge, any_text) == ("3", Source.LLM)
    assert await answers(cache).get(PROMPT, judge, any_text) == ("1", Source.CACHE)
    assert all(key.startswith(PRIVATE_PREFIX) for key in off.used_keys)


@pytest.mark.anyio
async def test_refresh_replaces_the_shared_answer_once_a_run() -> None:
    cache, judge = DictCache(), Judge()
    await answers(cache).get(PROMPT, judge, any_text)
    refresh = answers(cache, mode=CacheMode.REFRESH)
    assert await refresh.get(PROMPT, judge, any_text) == ("2", Source.LLM)
    assert await refresh.get(PROMPT, judge, any_text) == ("2", Source.CACHE)
    assert await answers(cache).get(PROMPT, judge, any_text) == ("2", Source.CACHE)
    assert set(refresh.used_keys) == set(cache.stored)
    assert sorted(key.startswith(PRIVATE_PREFIX) for key in cache.stored) == [False, True]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", list(CacheMode))
async def test_nothing_is_stored_when_nothing_is_kept(mode: CacheMode) -> None:
    cache, judge = DictCache(), Judge()
    private = answers(cache, mode=mode, kept=False)
    await private.get(PROMPT, judge, any_text)
    assert await private.get(PROMPT, judge, any_text) == ("2", Source.LLM)
    assert cache.stored == {}
    assert private.used_keys == []


@pytest.mark.anyio
@pytest.mark.parametrize("mode", list(CacheMode))
async def test_a_stored_answer_that_fails_its_check_is_asked_again(mode: CacheMode) -> None:
    cache, judge = DictCache(), Judge()
    run = answers(cache, mode=mode)
    await run.get(PROMPT, judge, any_text)
    for key in cache.stored:
        cache.stored[key] = b""
    assert await run.get(PROMPT, judge, any_text) == ("2", Source.LLM)
    assert set(cache.stored.values()) == {b"2"}


@pytest.mark.anyio
@pytest.mark.parametrize("kept", [True, False])
async def test_a_fresh_answer_that_fails_its_check_is_a_bug(kept: bool) -> None:
    with pytest.raises(Internal):
        await answers(DictCache(), kept=kept).get(PROMPT, Judge(), lambda _: None)


@pytest.mark.anyio
async def test_keys_are_noted_even_when_the_judge_fails() -> None:
    async def refuse() -> bytes:
        raise JudgeRefused("No")

    run = answers(DictCache(), mode=CacheMode.REFRESH)
    with pytest.raises(JudgeRefused):
        await run.get(PROMPT, refuse, any_text)
    assert len(run.used_keys) == 2


VARIANTS = {
    "tenant": {"about": ("other", "judge", "bias", "1", "{}")},
    "judge": {"about": ("tenant", "other", "bias", "1", "{}")},
    "scorer": {"about": ("tenant", "judge", "other", "1", "{}")},
    "version": {"about": ("tenant", "judge", "bias", "2", "{}")},
    "options": {"about": ("tenant", "judge", "bias", "1", '{"scale":10}')},
    "shifted": {"about": ("tenantjudge", "", "bias", "1", "{}")},
}
PROMPTS = {
    "system": Prompt("other", "user", {"type": "object"}, "bias_analyze", 512),
    "user": Prompt("system", "other", {"type": "object"}, "bias_analyze", 512),
    "schema": Prompt("system", "user", {"type": "array"}, "bias_analyze", 512),
    "name": Prompt("system", "user", {"type": "object"}, "bias_label", 512),
    "shifted": Prompt("systemuser", "", {"type": "object"}, "bias_analyze", 512),
}


@pytest.mark.anyio
async def test_no_two_different_questions_share_a_key() -> None:
    cache = DictCache()
    asked = [(answers(cache, **change), PROMPT) for change in VARIANTS.values()]
    asked += [(answers(cache), prompt) for prompt in PROMPTS.values()]
    asked += [(answers(cache, mode=CacheMode.OFF, run_id=run_id), PROMPT) for run_id in ("run-1", "run-2")]
    asked.append((answers(cache), PROMPT))
    for run, prompt in asked:
        await run.get(prompt, Judge(), any_text)
    keys = [run.used_keys[0] for run, _ in asked]
    assert all(one != other for one, other in itertools.combinations(keys, 2))


class SlowCache(DictCache):
    async def answer(self, key: str, mode: CacheMode, ask: object) -> CachedAnswer:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.anyio
async def test_waiting_ends_at_the_deadline() -> None:
    with pytest.raises(JudgeTimeout):
        await answers(SlowCache(), deadline=1_000.01).get(PROMPT, Judge(), any_text)
    with pytest.raises(JudgeTimeout):
        await answers(SlowCache(), deadline=0.0).get(PROMPT, Judge(), any_text)


@pytest.mark.anyio
async def test_a_timeout_of_another_kind_is_not_taken_for_the_deadline() -> None:
    async def fail() -> bytes:
        raise TimeoutError("another one")

    with pytest.raises(TimeoutError, match="another one"):
        await answers(DictCache()).get(PROMPT, fail, any_text)
