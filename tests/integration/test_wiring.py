"""What is started is ended, also when the rest never starts."""

import asyncio

import pytest

from app.settings import Settings
from app.wiring import build_deps


def listeners() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "run-notifier"]


@pytest.mark.anyio
async def test_a_start_that_is_given_up_leaves_no_listener() -> None:
    settings = Settings(_env_file=None, redis_url="unix:///nowhere/valkey.sock")  # type: ignore[call-arg,arg-type]

    async def start() -> None:
        async with build_deps(settings):
            raise AssertionError("Redis is not there, so the start takes its time")

    starting = asyncio.create_task(start())
    while not listeners():  # noqa: ASYNC110 - nobody tells that a task exists
        await asyncio.sleep(0)
    starting.cancel()
    await asyncio.wait({starting})
    assert starting.cancelled()
    assert not listeners()
