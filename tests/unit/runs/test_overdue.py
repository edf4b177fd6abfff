"""Who finds a run past its deadline ends it, and no other."""

from datetime import timedelta
from typing import Any, cast

import pytest

from app.domain.request import RunRequest
from app.ports import Claim, RunKey
from app.runs import overdue
from app.runs.deps import Deps
from app.runs.overdue import end_overdue
from tests.unit.fakes import FakeClock
from tests.unit.judge.runs import new_run

KEY = RunKey("default", "run-1")


class Store:
    """Notes what is released."""

    def __init__(self) -> None:
        self.released: list[Claim] = []

    async def release(self, claim: Claim) -> bool:
        self.released.append(claim)
        return True


@pytest.mark.anyio
async def test_a_run_that_was_retried_meanwhile_is_left_to_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = Store(), FakeClock()
    run = new_run().model_copy(update={"deadline_at": clock.now() + timedelta(seconds=60)})
    request = RunRequest(scorer_id="bias", output="A text.", options={}, model="stub/judge", timeout_ms=60_000)
    claim = Claim(KEY, 1, run, request)

    async def claim_run(*_: Any, **__: Any) -> Claim:
        return claim

    async def execute_run(*_: Any, **__: Any) -> None:
        raise AssertionError("it is not overdue")

    monkeypatch.setattr(overdue, "claim_run", claim_run)
    monkeypatch.setattr(overdue, "execute_run", execute_run)

    await end_overdue(cast(Deps, type("Deps", (), {"store": store, "clock": clock})()), KEY)

    assert store.released == [claim]
