"""A TCP proxy in front of a server: it can cut its connections and refuse more, or fall silent."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Self

from tests.integration.service import free_port

CHUNK = 65_536


class Proxy:
    """`with Proxy(port) as proxy:` passes bytes between `proxy.port` and a local server, in a thread of its own."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._passing: asyncio.Event
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Cut every connection and refuse new ones."""
        self._call(self._cut())

    def silence(self) -> None:
        """Keep connections, accept more, and pass nothing on, as a network does that drops packets."""
        self._call(self._set_passing(passing=False))

    def mend(self) -> None:
        """Be well again."""
        self._call(self._mend())

    def _call(self, doing: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(doing, self._loop).result(10)

    async def _start(self) -> None:
        self._passing = asyncio.Event()
        self._passing.set()
        await self._listen()

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()

    async def _set_passing(self, *, passing: bool) -> None:
        if passing:
            self._passing.set()
        else:
            self._passing.clear()

    async def _mend(self) -> None:
        self._passing.set()
        await self._listen()

    async def _end(self) -> None:
        await self._cut()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._passing.wait()
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(there_writer)
            await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
            self._writers.discard(there_writer)
        except (OSError, asyncio.CancelledError):
            return
        finally:
            writer.close()
            self._writers.discard(writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(CHUNK):
                await self._passing.wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
