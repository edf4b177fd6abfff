"""The lease of a claim: kept while the run is executed, and looked at before anything is paid for."""

import asyncio
from collections.abc import Awaitable, Callable

from app.domain.errors import StoreUnavailable
from app.ports import ChatModel, Claim, Completion, Prompt, Slot
from app.runs.deps import Deps

# Soon after the store is back, a lease that ran out while it was away must be renewed before others take the run.
RETRY_S = 1.0


class ClaimLost(Exception):
    """The run was cancelled, deleted or taken over: what was computed must not be written."""


class Lease:
    """What a claim's holder knows of its lease."""

    def __init__(self, deps: Deps, claim: Claim, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._deps = deps
        self._claim = claim
        self._pause = pause
        self._lease_s = deps.policy.lease_s
        self._until = deps.clock.monotonic() + self._lease_s

    async def keep(self) -> None:
        """Renew until the claim is lost, which a change of the run (cancel, delete) tells at once."""
        every_s = pause_s = self._lease_s / 3
        async with self._deps.notifier.watch(self._claim.key) as watch:
            while True:
                await watch.changed(pause_s)
                try:
                    if not await self._renew():
                        return
                    pause_s = every_s
                except StoreUnavailable:
                    pause_s = min(every_s, RETRY_S)

    async def confirm(self) -> None:
        """Make sure that the run is still ours, however long that takes; raises ClaimLost.

        A process that was frozen does not know that its lease has ended. One that can't reach the store does not know
        whether others can: what it asked for now might be paid for twice.
        """
        while self._deps.clock.monotonic() >= self._until:
            try:
                if not await self._renew():
                    raise ClaimLost
            except StoreUnavailable:
                await self._pause(RETRY_S)

    async def _renew(self) -> bool:
        asked = self._deps.clock.monotonic()
        is_held = await self._deps.store.renew(self._claim, self._lease_s)
        if is_held:
            self._until = asked + self._lease_s
        return is_held


class FencedModel:
    """A judge that is asked only while the claim is held; raises ClaimLost."""

    def __init__(self, model: ChatModel, lease: Lease) -> None:
        self._model = model
        self._lease = lease
        self.id = model.id
        self.context_tokens = model.context_tokens
        self.max_output_tokens = model.max_output_tokens
        self.identity = model.identity

    async def complete(self, prompt: Prompt, *, deadline: float, slot: Slot | None = None) -> Completion:
        """Ask the model, as ChatModel does."""
        await self._lease.confirm()
        return await self._model.complete(prompt, deadline=deadline, slot=slot)
