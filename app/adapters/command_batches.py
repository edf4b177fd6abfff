"""Commands issued in one tick of the event loop, sent in one write over one connection.

Alone, a command costs redis-py several times its share of a batch; at rest a batch is a single command.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import hiredis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.exceptions import ResponseError


class _Command(NamedTuple):
    name: str
    packed: bytes
    options: dict[str, Any]
    answer: asyncio.Future[Any]


Read = Callable[..., Awaitable[Any]]
"""Reads one reply from a connection: (connection, command name, **options)."""


class CommandBatches:
    """Sends commands over a pool, those of one tick together; every command must bear repetition."""

    def __init__(self, pool: BlockingConnectionPool, read: Read, retry: Retry, patience_s: float) -> None:
        self._pool = pool
        self._read = read
        self._retry = retry
        self._patience_s = patience_s
        self._waiting: list[_Command] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def execute(self, words: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the command's answer; raises RedisError, OSError or TimeoutError.

        A command that can't be packed is its caller's error alone, of the packer's types.
        """
        packed = _packed(words)
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._send)
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(_Command(words[0], packed, options, answer))
        return await answer

    def _send(self) -> None:
        batch, self._waiting = self._waiting, []
        # The loop itself keeps only weak references to tasks.
        task = asyncio.create_task(self._exchange(batch))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _exchange(self, batch: list[_Command]) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._retry.call_with_retry(lambda: self._attempt(batch), _no_cleaning)
        except Exception as error:  # noqa: BLE001 - raised again by those who wait
            for command in batch:
                if not command.answer.done():
                    command.answer.set_exception(error)

    async def _attempt(self, batch: list[_Command]) -> None:
        waiting = [command for command in batch if not command.answer.done()]
        if not waiting:
            return
        connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        in_step = False
        try:
            await connection.send_packed_command(b"".join(command.packed for command in waiting))
            for command in waiting:
                await self._answer(connection, command)
            in_step = True
        finally:
            # Replies that were not read would be taken for those of the next commands.
            if not in_step:
                await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    async def _answer(self, connection: AbstractConnection, command: _Command) -> None:
        try:
            answer = await self._read(connection, command.name, **command.options)
        except ResponseError as error:
            if not command.answer.done():
                command.answer.set_exception(error)
            return
        if not command.answer.done():
            command.answer.set_result(answer)


def _packed(words: tuple[Any, ...]) -> bytes:
    """Return a command as it goes over the wire; a name such as `SCRIPT LOAD` is two words of it."""
    packed: bytes = hiredis.pack_command((*words[0].split(), *words[1:]))
    return packed


async def _no_cleaning(_: Exception) -> None:
    """Nothing is left to clean between attempts: a failed one has closed its connection."""
