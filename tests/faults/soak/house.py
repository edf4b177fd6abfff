"""The processes of a soak: APIs, workers, judge and Redis, who breaks them, and who starts again what died."""

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.faults.servers import Server
from tests.faults.soak.schedule import Fault
from tests.integration.service import Process, Service

RESTART_S = 0.5
LOOK_S = 0.1
RULES: dict[str, dict[str, Any]] = {
    "judge answers 429": {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": {"message": "slower"}}},
    "judge answers 500": {"status": 500, "body": {"error": {"message": "broken"}}},
    "judge answers 529": {"status": 529, "body": {"error": {"message": "overloaded"}}},
    "judge hangs": {"hang": True},
    "judge drops calls": {"drop": "mid_body"},
}


class House:
    """`with House(server, folder, ...) as house:`; `troubles` are the times (Unix) in which something was wrong."""

    def __init__(self, server: Server, folder: Path, *, workers: int, apis: int, delay_ms: float) -> None:
        self.server = server
        self.service = Service(
            server.url,
            folder,
            workers=workers,
            apis=apis,
            delay_ms=delay_ms,
            judge_timeout_s="4",
            worker_grace_s="5",
            inline_wait_s="20",
        )
        self.troubles: list[tuple[float, float, str]] = []
        self.restarts = {"API": 0, "worker": 0}

    def __enter__(self) -> Self:
        self.service.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.service.__exit__(kind, error, trace)

    @property
    def processes(self) -> dict[str, Process]:
        """All of them by name."""
        apis = {f"api-{number}": process for number, process in enumerate(self.service.apis)}
        return apis | {f"worker-{number}": process for number, process in enumerate(self.service.workers)}

    async def supervise(self) -> None:
        """Start again what died, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            for role, group in (("API", self.service.apis), ("worker", self.service.workers)):
                for number, process in enumerate(group):
                    if not process.alive:
                        await asyncio.sleep(RESTART_S)
                        process.output.close()
                        group[number] = process.again()
                        self.restarts[role] += 1

    async def break_things(self, schedule: list[Fault], say: Callable[[str], None]) -> None:
        """Do what the schedule says, and end every fault again."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for fault in schedule:
                await asyncio.sleep(max(0.0, began + fault.at_s - time.monotonic()))
                say(f"  {fault}")
                group.create_task(self._break(fault))

    async def _break(self, fault: Fault) -> None:
        since = time.time()
        match fault.kind.split()[0]:
            case "worker":
                await self._break_process(self.service.workers[fault.number], fault)
            case "API":
                await self._break_process(self.service.apis[fault.number], fault)
            case "Redis":
                await asyncio.to_thread(self.server.kill if fault.kind == "Redis killed" else self.server.stop)
                await asyncio.sleep(fault.lasts_s)
                await asyncio.to_thread(self.server.start)
            case _:
                await self._break_judge(fault)
        self.troubles.append((since, time.time(), fault.kind))

    async def _break_process(self, process: Process, fault: Fault) -> None:
        with suppress(ProcessLookupError):
            match fault.kind.partition(" ")[2]:
                case "killed":
                    process.child.kill()
                case "asked to stop":
                    process.child.send_signal(signal.SIGTERM)
                    # Whatever it answers while it drains counts to this trouble.
                    await asyncio.to_thread(process.child.wait)
                case "frozen":
                    process.freeze()
                    await asyncio.sleep(fault.lasts_s)
                    process.thaw()

    async def _break_judge(self, fault: Fault) -> None:
        stub = self.service.stub
        begin: Callable[[], None] = stub.go_down
        end: Callable[[], None] = stub.come_back
        if fault.kind in RULES:
            rule = {**RULES[fault.kind], "times": None}
            begin, end = (lambda: stub.script(rule)), stub.unscript
        await asyncio.to_thread(begin)
        await asyncio.sleep(fault.lasts_s)
        await asyncio.to_thread(end)
