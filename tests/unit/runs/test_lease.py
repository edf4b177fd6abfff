"""Nothing is paid for by who has lost the run, as far as it can know."""

from typing import Any, cast

import pytest

from app.domain.errors import StoreUnavailable
from app.ports import Claim, Prompt
from app.runs.deps import Deps
from app.runs.lease import ClaimLost, FencedModel, Lease
from tests.unit.fakes import FakeClock, ScriptedModel

LEASE_S = 15.0
PROMPT = Prompt(system="s", user="u", schema={}, name="n", max_tokens=10)


class Store:
    """Renews as it is told to."""

    def __init__(self) -> None:
        self.answer: bool | Exception = True
        self.renewals = 0

    async def renew(self, claim: Claim, lease_s: float) -> bool:
        self.renewals += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Holder:
    """A claim's holder with a judge that counts its calls."""

    def __init__(self) -> None:
        self.clock, self.store = FakeClock(), Store()
        self.judge = ScriptedModel(lambda _: "{}")
        policy = type("Policy", (), {"lease_s": LEASE_S})
        deps: Any = type("Deps", (), {"clock": self.clock, "store": self.store, "policy": policy})
        self.model = FencedModel(self.judge, Lease(cast(Deps, deps), cast(Claim, None), self.pause))
        self.while_away: list[bool | Exception] = []

    async def pause(self, seconds: float) -> None:
        self.clock.seconds += seconds
        self.store.answer = self.while_away.pop(0)

    async def ask(self) -> None:
        await self.model.complete(PROMPT, deadline=self.clock.seconds + 60)


@pytest.fixture
def holder() -> Holder:
    return Holder()


@pytest.mark.anyio
async def test_within_the_lease_nobody_is_asked(holder: Holder) -> None:
    holder.store.answer = False
    holder.clock.seconds += LEASE_S - 1
    await holder.ask()
    assert (holder.store.renewals, len(holder.judge.prompts)) == (0, 1)


@pytest.mark.anyio
async def test_who_was_frozen_past_the_lease_asks_whether_the_run_is_still_its_own(holder: Holder) -> None:
    holder.clock.seconds += LEASE_S + 1
    await holder.ask()
    await holder.ask()
    assert (holder.store.renewals, len(holder.judge.prompts)) == (1, 2)


@pytest.mark.anyio
async def test_who_has_lost_the_run_pays_for_nothing_more(holder: Holder) -> None:
    holder.clock.seconds += LEASE_S + 1
    holder.store.answer = False
    with pytest.raises(ClaimLost):
        await holder.ask()
    assert holder.judge.prompts == []


@pytest.mark.anyio
async def test_an_outage_shorter_than_the_lease_holds_nobody_up(holder: Holder) -> None:
    holder.clock.seconds += LEASE_S - 1
    holder.store.answer = StoreUnavailable()
    await holder.ask()
    assert (holder.store.renewals, len(holder.judge.prompts)) == (0, 1)


@pytest.mark.anyio
async def test_who_can_not_reach_the_store_waits_until_it_says_whose_the_run_is(holder: Holder) -> None:
    holder.clock.seconds += LEASE_S + 1
    holder.store.answer, holder.while_away = StoreUnavailable(), [StoreUnavailable(), True]
    await holder.ask()
    assert (holder.store.renewals, len(holder.judge.prompts)) == (3, 1)


@pytest.mark.anyio
async def test_what_others_took_while_the_store_could_not_be_reached_is_left_to_them(holder: Holder) -> None:
    holder.clock.seconds += LEASE_S + 1
    holder.store.answer, holder.while_away = StoreUnavailable(), [False]
    with pytest.raises(ClaimLost):
        await holder.ask()
    assert holder.judge.prompts == []
