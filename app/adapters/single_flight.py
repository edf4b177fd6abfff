"""Equal questions asked at the same time in one process are asked once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Landed(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


class Flown(NamedTuple, Generic[T]):
    """The answer, and whether this caller led (asked itself)."""

    value: T
    led: bool


class SingleFlight(Generic[T]):
    """The first caller of a key leads, in its own task and with its own question; those who come meanwhile wait.

    An error that `is_shared` is everybody's. When the leader is cancelled or fails otherwise, the first waiter leads
    next. A waiter that is cancelled disturbs nobody.
    """

    def __init__(self, is_shared: Callable[[Exception], bool]) -> None:
        self._is_shared = is_shared
        self._flights: dict[str, asyncio.Future[_Landed[T] | _Failed | None]] = {}

    async def fly(self, key: str, lead: Callable[[], Awaitable[T]]) -> Flown[T]:
        """Return what this caller's or the present leader's `lead` returns; raises what it raises, if shared."""
        while (flight := self._flights.get(key)) is not None:
            # Shielded: cancelling one who waits must not cancel what the others wait for.
            outcome = await asyncio.shield(flight)
            if isinstance(outcome, _Failed):
                raise outcome.error
            if outcome is not None:
                return Flown(outcome.value, led=False)
        return Flown(await self._lead(key, lead), led=True)

    async def _lead(self, key: str, lead: Callable[[], Awaitable[T]]) -> T:
        flight: asyncio.Future[_Landed[T] | _Failed | None] = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        outcome: _Landed[T] | _Failed | None = None
        try:
            value = await lead()
            outcome = _Landed(value)
        except Exception as error:
            if self._is_shared(error):
                outcome = _Failed(error)
            raise
        finally:
            del self._flights[key]
            flight.set_result(outcome)
        return value
