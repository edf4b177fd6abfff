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
        self.model = FencedModel(self.judge, Lease(cast(Deps, deps), cast(Claim, None)))

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
async def test_while_the_store_is_away_the_holder_goes_on(holder: Holder) -> None:
    holder.clock.seconds += LEASE_S + 1
    holder.store.answer = StoreUnavailable()
    await holder.ask()
    assert (holder.store.renewals, len(holder.judge.prompts)) == (1, 1)
