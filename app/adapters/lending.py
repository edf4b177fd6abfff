"""A queued run's slot, lent while the run waits."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from app.ports import Slot

# Shorter waits are not worth another run's start.
LEND_AFTER_S = 0.2


@contextmanager
def lent_when_long(slot: Slot | None) -> Iterator[None]:
    """Lend the slot, if there is one, as soon as the block has lasted LEND_AFTER_S, and take it back at its end."""
    if slot is None:
        yield
        return
    with ExitStack() as lent:
        lending = asyncio.get_running_loop().call_later(LEND_AFTER_S, lambda: lent.enter_context(slot.lent()))
        try:
            yield
        finally:
            lending.cancel()
