"""The embedded Valkey while `assay up` runs: started first, looked after, ended last."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.settings import SettingsError

LOOK_EVERY_S = 2.0


class KeptValkey:
    """A Valkey on a data directory that is started again when it ends."""

    def __init__(self, data_dir: Path, server: EmbeddedValkey, report: Callable[[str], None]) -> None:
        self._data_dir = data_dir
        self._server = server
        self._report = report

    @classmethod
    async def start(cls, data_dir: Path, report: Callable[[str], None]) -> "KeptValkey":
        """Start the server, or join the one that runs there; raises SettingsError when it can't be had."""
        return cls(data_dir, await asyncio.to_thread(start_valkey, data_dir), report)

    @property
    def url(self) -> str:
        """Where it listens; the same after every start."""
        return self._server.url

    async def keep_running(self) -> None:
        """Look every two seconds whether it still runs. Starting an already running server only joins it."""
        failing = False
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                server = await asyncio.to_thread(start_valkey, self._data_dir)
            except SettingsError as error:
                if not failing:
                    self._report(f"Redis is away and is tried again every {LOOK_EVERY_S:g} s: {error}")
                failing = True
                continue
            failing = False
            if not server.attached:
                await self.stop()
                self._server = server
                self._report("Redis (the embedded Valkey) had ended and was started again")

    async def stop(self) -> None:
        """End the server when it is ours, its data on disk."""
        await asyncio.to_thread(self._server.stop)
