"""A few at a time, and nobody for ever."""

import asyncio

import pytest

from app.runs.turns import Turns


class Room:
    """Where those that have a turn stay until `leave` is set."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.inside: list[int] = []
        self.leave = asyncio.Event()
        self.most = 0

    async def stay(self, number: int) -> None:
        async with self.turns.turn():
            self.inside.append(number)
            self.most = max(self.most, len(self.inside))
            await self.leave.wait()
            self.inside.remove(number)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.anyio
async def test_so_many_are_in_together_and_the_next_follow_in_their_order() -> None:
    room = Room(Turns(at_once=3, patience_s=60))
    staying = [asyncio.create_task(room.stay(number)) for number in range(7)]
    await settle()
    assert room.inside == [0, 1, 2]
    room.leave.set()
    await asyncio.gather(*staying)
    assert room.most == 3


@pytest.mark.anyio
async def test_whoever_waited_long_enough_goes_in_all_the_same() -> None:
    room = Room(Turns(at_once=1, patience_s=0.01))
    staying = [asyncio.create_task(room.stay(number)) for number in range(3)]
    while len(room.inside) < 3:  # noqa: ASYNC110 - their patience is what ends it
        await asyncio.sleep(0)
    room.leave.set()
    await asyncio.gather(*staying)
    # Those who came in without a turn gave none back.
    room.leave.clear()
    again = [asyncio.create_task(room.stay(number)) for number in range(2)]
    await settle()
    assert room.inside == [0]
    room.leave.set()
    await asyncio.gather(*again)


@pytest.mark.anyio
async def test_one_that_gives_up_or_fails_leaves_its_turn() -> None:
    turns = Turns(at_once=1, patience_s=60)
    room = Room(turns)
    first, second = (asyncio.create_task(room.stay(number)) for number in range(2))
    await settle()
    second.cancel()
    first.cancel()
    await asyncio.wait({first, second})
    with pytest.raises(ValueError, match="within"):
        async with turns.turn():
            raise ValueError("within")
    async with asyncio.timeout(5), turns.turn():
        pass
