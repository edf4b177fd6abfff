"""An RQ worker that executes many coroutine jobs at once on one event loop."""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import redis
import structlog
import uvloop
from pydantic import SecretStr
from redis.asyncio import Redis
from rq import SimpleWorker
from rq.command import handle_command, parse_payload
from rq.serializers import JSONSerializer
from rq.utils import now

from app.adapters.backoff import Backoff
from app.adapters.redis_client import REDIS_ERRORS, connect
from worker.bookkeeping import LEASE_S, Bookkeeping, Taken
from worker.commands import Commands
from worker.doorbell import BLOCK_S, Doorbell
from worker.executions import Executions
from worker.heartbeat import BEAT_S, Heartbeat
from worker.jobs import AllowedJob, Execute, executor
from worker.recorder import Recorder

log = structlog.get_logger()

SUSPENDED_S = 1.0
# While a judge is away, so many jobs wait here for each that could be executed.
IN_HAND_PER_PLACE = 16
# RQ's rule: a signal that comes twice within a second (from the terminal and from a parent) is meant once.
SAME_SIGNAL_S = 1.0
# For what is cancelled: to let go of its run, and for us to record that.
GIVE_BACK_S = 5.0
GIVE_BACK_TRIES = 5


class AsyncWorker(SimpleWorker):
    """Takes jobs from queues, highest first, and awaits `execute(tenant, run_id)` for up to `concurrency` at once.

    A job that lends its slot (`worker.jobs.slot`) does not count meanwhile.

    Stop it with SIGTERM, SIGINT or RQ's shutdown command: it takes no more jobs, gives those that run `grace` seconds
    to end, cancels the rest and puts them back in front of their queue. A second signal, after a second, ends the
    grace. While Redis is away it goes on with what it has, and records it afterwards.

    Connects to Redis when it is made, and blocks for that: make it in a thread, or before the event loop.
    """

    def __init__(
        self,
        queues: Sequence[str],
        *,
        url: SecretStr | str,
        execute: Execute,
        concurrency: int = 64,
        grace: float = 30.0,
        name: str | None = None,
        on_beat: Callable[[], None] = lambda: None,
        on_recovered: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._url = url.get_secret_value() if isinstance(url, SecretStr) else url
        super().__init__(
            list(queues),
            name=name,
            # RQ's own code knows only a blocking client; it needs one at birth and at death, off the event loop.
            connection=redis.Redis.from_url(self._url),
            job_class=AllowedJob,
            serializer=JSONSerializer,
            worker_ttl=LEASE_S,
            job_monitoring_interval=int(BEAT_S),
        )
        self.concurrency = concurrency
        self.grace = grace
        self._execute = execute
        self._on_beat = on_beat
        self._on_recovered = on_recovered
        self._stopping = asyncio.Event()
        self._stopped_at = 0.0
        self._patience: asyncio.Timeout | None = None
        # Anything that lets the main loop go on: a free slot, a job in a queue, a signal.
        self._changed = asyncio.Event()

    def _set_ip_address(self, connection: redis.Redis) -> None:
        try:
            super()._set_ip_address(connection)
        except ValueError:
            # redis-py can't read the server's answer when the path of a unix socket holds a space or "=".
            self.ip_address = "unknown"

    def work(self, burst: bool = False, *args: Any, **options: Any) -> bool:
        """Run in an event loop of its own until stopped or, with `burst`, until the queues are empty.

        Returns whether any job was executed. RQ's other options have no meaning here and are refused.
        """
        if args or options:
            raise TypeError("AsyncWorker.work() takes `burst` only")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self.run(burst=burst)) > 0

    async def run(self, *, burst: bool = False) -> int:
        """Work on the current event loop until stopped; returns how many jobs were begun."""
        executor.set(self._execute)
        async with AsyncExitStack() as stack:
            client, blocking = await self._connect(stack)
            self._listen_to_signals(stack)
            await asyncio.to_thread(self.register_birth)
            stack.push_async_callback(self._leave)
            log.info("worker_started", worker=self.name, queues=self.queue_names(), concurrency=self.concurrency)

            bookkeeping = Bookkeeping(client, self.name, self.queue_names())
            recorder = Recorder(bookkeeping)
            executions = Executions(self.connection, put=recorder.put, on_free=self._changed.set)
            doorbell = Doorbell(blocking, self.queue_keys(), self._changed.set)
            heartbeat = Heartbeat(
                bookkeeping, self._identity, lambda: executions.taken, self._on_beat, self._on_recovered
            )
            commands = Commands(client, self.pubsub_channel_name, lambda message: self._obey(message, executions))
            async with asyncio.TaskGroup() as group:
                services = [
                    group.create_task(recorder.run(executions.forget)),
                    group.create_task(doorbell.run()),
                    group.create_task(heartbeat.run()),
                    group.create_task(commands.run()),
                ]
                begun = await self._take_jobs(bookkeeping, executions, doorbell, burst=burst)
                await self._drain(executions)
                for service in services:
                    service.cancel()
        return begun

    def stop(self) -> None:
        """Shut down warmly; called again after a second, at once."""
        moment = asyncio.get_running_loop().time()
        if not self._stopping.is_set():
            self._stopped_at = moment
            self._stopping.set()
            self._changed.set()
            log.info("worker_stopping", worker=self.name)
        elif moment - self._stopped_at >= SAME_SIGNAL_S:
            self.grace = 0.0
            if self._patience is not None:
                self._patience.reschedule(moment)

    async def _take_jobs(
        self, bookkeeping: Bookkeeping, executions: Executions, doorbell: Doorbell, *, burst: bool
    ) -> int:
        backoff = Backoff()
        begun = 0
        while not self._stopping.is_set():
            self._changed.clear()
            free = self._free(executions)
            if free == 0:
                await self._changed.wait()
                continue
            was_idle = not executions
            taken = await self._take(bookkeeping, free, backoff)
            for job in taken:
                executions.start(job)
            begun += len(taken)
            if taken:
                continue
            # A job that ended during the look may be back in line for its next attempt.
            if burst and was_idle:
                break
            doorbell.arm()
            await self._changed.wait()
        return begun

    def _free(self, executions: Executions) -> int:
        """How many more jobs may be begun: those that wait for their judge have lent their places to others."""
        in_hand = len(executions)
        free = self.concurrency - (in_hand - executions.lent)
        return max(min(free, IN_HAND_PER_PLACE * self.concurrency - in_hand), 0)

    async def _take(self, bookkeeping: Bookkeeping, wanted: int, backoff: Backoff) -> list[Taken]:
        """Take what waits; when Redis is away or RQ's workers are suspended, try again until stopped."""
        while not self._stopping.is_set():
            try:
                taken = await bookkeeping.take(wanted)
            except REDIS_ERRORS as error:
                log.warning("no_jobs_taken", error=type(error).__name__)
                await self._pause(backoff.pause_s())
                continue
            backoff.reset()
            if taken is not None:
                return taken
            await self._pause(SUSPENDED_S)
        return []

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _drain(self, executions: Executions) -> None:
        """Let what runs end within the grace, then give the rest back; what only waits for its judge, at once."""
        executions.drain()
        if not await self._is_idle_within_grace(executions):
            await self._give_back(executions)

    async def _is_idle_within_grace(self, executions: Executions) -> bool:
        try:
            async with asyncio.timeout(self.grace) as self._patience:
                await executions.wait_until_idle()
        except TimeoutError:
            return False
        finally:
            # A signal that comes later has no grace left to end.
            self._patience = None
        return True

    async def _give_back(self, executions: Executions) -> None:
        log.warning("jobs_given_back", worker=self.name, jobs=len(executions))
        for _ in range(GIVE_BACK_TRIES):
            # Libraries have been seen to swallow a cancellation: whoever is still at work is told again.
            executions.give_back()
            with suppress(TimeoutError):
                async with asyncio.timeout(GIVE_BACK_S / GIVE_BACK_TRIES):
                    await executions.wait_until_idle()
                    return
        log.warning("jobs_left_to_their_leases", worker=self.name, jobs=len(executions))

    def _obey(self, message: Mapping[str, Any], executions: Executions) -> None:
        payload = parse_payload(dict(message))
        match payload["command"]:
            case "stop-job":
                executions.stop(job_id=payload["job_id"])
            case "stop-execution":
                executions.stop(execution_id=payload["execution_id"])
            case _:
                handle_command(self, payload)

    def _identity(self) -> Mapping[str, Any]:
        self.last_heartbeat = now()
        return self.serialize()

    async def _connect(self, stack: AsyncExitStack) -> tuple[Redis, Redis]:
        clients = connect(self._url), connect(self._url, operation_s=BLOCK_S * 2)
        for client in clients:
            stack.push_async_callback(client.aclose)
        return clients

    def _listen_to_signals(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
            stack.callback(loop.remove_signal_handler, number)

    async def _leave(self) -> None:
        try:
            await asyncio.to_thread(self.register_death)
        except REDIS_ERRORS as error:
            log.warning("death_not_registered", worker=self.name, error=type(error).__name__)
        self.connection.close()
        log.info("worker_stopped", worker=self.name)
