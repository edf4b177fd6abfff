"""What the worker does with jobs, on a real server."""

import asyncio
import json
import pickle
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from rq.command import send_command, send_shutdown_command, send_stop_execution_command, send_stop_job_command
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.suspension import resume, suspend

from app.adapters.embedded_valkey import start_valkey
from app.adapters.rq_queue import MAX_RETRIES, RqRunQueue, job_id
from app.domain.errors import JudgeUnavailable
from app.domain.request import Priority
from tests.integration.worker.running import Runs, burst, key, make_worker, working
from worker.doorbell import BLOCK_S

CANARY = "a sentence that must not be told"
NORMAL = "rq:queue:assay-normal"
# Less than a wait for a queue that stays empty.
SOON_S = BLOCK_S / 2


def job_of(client: redis.Redis, name: str) -> Job:
    return Job.fetch(job_id(key(name)), connection=client, serializer=JSONSerializer)


async def enqueue(queue: RqRunQueue, *names: str, priority: Priority = Priority.NORMAL, timeout_s: float = 60) -> None:
    for name in names:
        await queue.enqueue(key(name), priority, timeout_s)


@pytest.mark.anyio
async def test_many_runs_execute_at_once_and_leave_nothing(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Runs(held=True)
    names = [str(number) for number in range(50)]
    await enqueue(queue, *names)
    async with working(valkey_url, runs.execute, concurrency=50) as worker:
        await runs.until(begun=50)
        assert client.zcard("rq:wip:assay-normal") == 50
        assert client.scard(f"rq:worker:{worker.name}:executions") == 50
        assert client.hget(worker.key, "state") == b"busy"
        runs.release.set()
        await runs.until(ended=50)
    assert sorted(runs.ended) == [key(name).run_id for name in names]
    assert set(client.scan_iter()) == {b"rq:queues", worker.key.encode()}
    assert client.hget(worker.key, "successful_job_count") == b"50"
    assert 0 < client.ttl(worker.key) <= 60


@pytest.mark.anyio
async def test_concurrency_is_a_bound(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    most = now = 0

    async def execute(tenant: str, run_id: str) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    await enqueue(queue, *(str(number) for number in range(40)))
    await burst(valkey_url, execute, concurrency=7)
    assert most == 7


@pytest.mark.anyio
async def test_two_workers_share_the_load(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    one, other = Runs(held=True), Runs(held=True)
    await enqueue(queue, *(str(number) for number in range(10)))
    async with (
        working(valkey_url, one.execute, concurrency=5),
        working(valkey_url, other.execute, concurrency=5),
    ):
        await one.until(begun=5)
        await other.until(begun=5)
        one.release.set()
        other.release.set()
    assert len(set(one.ended) | set(other.ended)) == 10


@pytest.mark.anyio
async def test_an_idle_worker_takes_a_job_of_any_queue_at_once(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Runs()
    async with working(valkey_url, runs.execute):
        for number, priority in enumerate([*reversed(Priority), *Priority], start=1):
            async with asyncio.timeout(SOON_S):
                while not client.info("clients")["blocked_clients"]:  # noqa: ASYNC110 - it is Redis that tells
                    await asyncio.sleep(0.01)
                await enqueue(queue, str(number), priority=priority)
                await runs.until(ended=number)


@pytest.mark.anyio
async def test_a_failure_is_retried_and_then_kept_by_its_code(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    attempts: list[str] = []

    async def execute(tenant: str, run_id: str) -> None:
        attempts.append(run_id)
        raise JudgeUnavailable(CANARY) from ValueError(CANARY)

    await enqueue(queue, "1")
    worker = await burst(valkey_url, execute)
    assert len(attempts) == MAX_RETRIES + 1
    job = job_of(client, "1")
    assert job.get_status() is JobStatus.FAILED
    result = job.latest_result()
    assert result is not None
    assert result.exc_string == "judge_unavailable"
    assert 0 < client.ttl(job.key) <= 86_400
    assert client.hget(worker.key, "failed_job_count") == str(MAX_RETRIES + 1).encode()
    assert not any(CANARY.encode() in client.dump(name) for name in client.scan_iter())


@pytest.mark.anyio
async def test_one_retry_is_enough_when_it_works(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    attempts: list[str] = []

    async def execute(tenant: str, run_id: str) -> None:
        attempts.append(run_id)
        if len(attempts) == 1:
            raise ValueError

    await enqueue(queue, "1", "2")
    await burst(valkey_url, execute, concurrency=1)
    # A retried run does not stand in line again behind those that came later.
    assert attempts == [key(name).run_id for name in ("1", "1", "2")]
    assert client.zcard("rq:failed:assay-normal") == 0


@pytest.mark.anyio
async def test_each_run_has_its_own_timeout(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    runs = Runs(held=True)
    await enqueue(queue, "1", timeout_s=1)
    await enqueue(queue, "2", timeout_s=60)
    client.hset(f"rq:job:{job_id(key('1'))}", "retries_left", 0)
    async with working(valkey_url, runs.execute):
        await runs.until(begun=2)
        while not client.zcard("rq:failed:assay-normal"):  # noqa: ASYNC110 - it is Redis that tells
            await asyncio.sleep(0.02)
        runs.release.set()
        await runs.until(ended=1)
    result = job_of(client, "1").latest_result()
    assert result is not None
    assert result.exc_string == "job_timeout"
    assert runs.ended == [key("2").run_id]


@pytest.mark.anyio
@pytest.mark.parametrize("by_execution", [False, True])
async def test_rq_stops_one_job_among_many(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str, by_execution: bool
) -> None:
    runs = Runs(held=True)
    await enqueue(queue, "1", "2", "3")
    async with working(valkey_url, runs.execute) as worker:
        await runs.until(begun=3)
        job = job_of(client, "2")
        await until_heard(client, worker.pubsub_channel_name)
        if by_execution:
            (execution,) = job.get_executions()
            send_stop_execution_command(client, job.id, execution.id)
        else:
            send_stop_job_command(client, job.id, serializer=JSONSerializer)
        while not client.zcard("rq:failed:assay-normal"):  # noqa: ASYNC110 - it is Redis that tells
            await asyncio.sleep(0.02)
        runs.release.set()
        await runs.until(ended=2)
    assert job.get_status() is JobStatus.STOPPED
    assert client.llen(NORMAL) == 0
    assert sorted(runs.ended) == [key("1").run_id, key("3").run_id]


async def until_heard(client: redis.Redis, channel: str) -> None:
    while not dict(client.pubsub_numsub(channel))[channel.encode()]:  # noqa: ASYNC110 - it is Redis that tells
        await asyncio.sleep(0.01)


@pytest.mark.anyio
async def test_commands_that_make_no_sense_are_passed_over(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Runs()
    async with working(valkey_url, runs.execute) as worker:
        await until_heard(client, worker.pubsub_channel_name)
        for message in (b"", b"\xff", b"null", b"[]", b"{}", b'{"command": "stop-job"}', b'{"command": "dance"}'):
            client.publish(worker.pubsub_channel_name, message)
        send_command(client, worker.name, "stop-job", job_id="unknown")
        send_command(client, worker.name, "kill-horse")
        await enqueue(queue, "1")
        await runs.until(ended=1)


@pytest.mark.anyio
async def test_rqs_shutdown_command_is_a_warm_shutdown(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    runs = Runs(held=True)
    await enqueue(queue, "1")
    worker = await asyncio.to_thread(make_worker, valkey_url, runs.execute, concurrency=1)
    running = asyncio.create_task(worker.run())
    await runs.until(begun=1)
    await until_heard(client, worker.pubsub_channel_name)
    await enqueue(queue, "2")
    send_shutdown_command(client, worker.name)
    await worker._stopping.wait()
    runs.release.set()
    assert await running == 1
    assert client.llen(NORMAL) == 1


@pytest.mark.anyio
async def test_a_job_that_swallows_a_cancellation_is_given_back_all_the_same(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    begun = asyncio.Event()

    async def execute(tenant: str, run_id: str) -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    async with working(valkey_url, execute, grace=0.1):
        await begun.wait()
    assert client.llen(NORMAL) == 1


@pytest.mark.anyio
async def test_a_signal_after_the_grace_changes_nothing(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.worker.SAME_SIGNAL_S", 0.0)
    begun, given_back, let_go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def execute(tenant: str, run_id: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_back.set()
            await let_go.wait()

    await queue.enqueue(key("1"), Priority.NORMAL, 60)
    worker = await asyncio.to_thread(make_worker, valkey_url, execute, grace=0.1)
    running = asyncio.create_task(worker.run())
    await begun.wait()
    worker.stop()
    await given_back.wait()
    worker.stop()
    let_go.set()
    assert await running == 1
    assert client.llen(NORMAL) == 1


@pytest.mark.anyio
async def test_suspended_workers_take_nothing_until_they_are_resumed(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Runs()
    suspend(client)
    async with working(valkey_url, runs.execute) as worker:
        await enqueue(queue, "1")
        while client.hget(worker.key, "state") != b"suspended":  # noqa: ASYNC110 - it is Redis that tells
            await asyncio.sleep(0.02)
        assert client.llen(NORMAL) == 1
        resume(client)
        await runs.until(ended=1)


@pytest.mark.anyio
async def test_high_goes_before_normal_before_bulk_and_none_starves(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    for number in range(30):
        await enqueue(queue, f"b{number}", priority=Priority.BULK)
        await enqueue(queue, f"n{number}", priority=Priority.NORMAL)
        await enqueue(queue, f"h{number}", priority=Priority.HIGH)
    runs = Runs()
    await burst(valkey_url, runs.execute, concurrency=1)
    order = [run_id.removeprefix("run-").lstrip("0")[0] for run_id in runs.begun]
    # Four turns of five go to the highest queue that has any; the fifth to the lower ones, one after the other.
    assert order[:20] == list("hhhhnhhhhb" * 2)
    assert order.count("h") == order.count("n") == order.count("b") == 30
    assert order[-15:].count("b") >= 12
    # Within a queue, first come is first served.
    for letter in "hnb":
        of_queue = [run_id for run_id in runs.begun if run_id.removeprefix("run-").lstrip("0")[0] == letter]
        assert of_queue == [key(f"{letter}{number}").run_id for number in range(30)]


def forge(client: redis.Redis, name: str, data: Any, **extra: Any) -> None:
    """Put a job in line that the queue did not make."""
    fields = {"data": data, "status": "queued", "origin": "assay-normal", "description": CANARY, **extra}
    client.hset(f"rq:job:{name}", mapping=fields)
    client.rpush(NORMAL, name)


def packed(*call: Any) -> bytes:
    return zlib.compress(json.dumps(call).encode())


class Toucher:
    """Unpickling it makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


@pytest.mark.anyio
async def test_forged_jobs_do_nothing_and_are_kept_as_failed_without_what_is_in_them(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str, tmp_path: Any
) -> None:
    mark = tmp_path / "mark"
    ours = packed("worker.jobs.execute", None, ["default", CANARY], {})
    limits = {"result_ttl": 0, "failure_ttl": 60, "timeout": 60, "retries_left": 2}
    forge(client, "system", packed("os.system", None, [f"touch {mark}"], {}), **limits)
    forge(client, "evaluated", packed("builtins.eval", None, [f"open({str(mark)!r}, 'w')"], {}), **limits)
    forge(client, "pickled", zlib.compress(pickle.dumps(Toucher(str(mark)))), **limits)
    forge(client, "pickled-meta", ours, meta=pickle.dumps(Toucher(str(mark))), **limits)
    forge(client, "callback", ours, success_callback_name="os.system", **limits)
    forge(client, "hook", ours, webhooks=json.dumps([{"url": "http://127.0.0.1/", "job_status": "failed"}]), **limits)
    forge(client, "unlimited", ours, **{**limits, "retries_left": 10**9, "failure_ttl": 10**9})
    forge(client, "empty", b"", **limits)
    forged = {name.decode() for name in client.lrange(NORMAL, 0, -1)}

    runs = Runs()
    await enqueue(queue, "1")
    await burst(valkey_url, runs.execute)

    assert runs.ended == [key("1").run_id]
    assert not mark.exists()
    assert {name.decode() for name in client.zrange("rq:failed:assay-normal", 0, -1)} == forged
    assert not any(CANARY.encode() in client.dump(name) for name in client.scan_iter())
    for name in forged:
        job = Job.fetch(name, connection=client, serializer=JSONSerializer)
        assert job.get_status() is JobStatus.FAILED
        assert (job.description, job.func_name, job.args) == ("refused", "refused", [])
        result = job.latest_result()
        assert result is not None
        assert result.exc_string == "job_refused"
        assert 0 < client.ttl(job.key) <= 86_400


@pytest.mark.anyio
async def test_what_is_no_job_at_all_is_passed_over(queue: RqRunQueue, client: redis.Redis, valkey_url: str) -> None:
    for nonsense in (b"unknown", b"", b"a:b", b"\xff\xfe", b"a b", b"../x"):
        client.rpush(NORMAL, nonsense)
    client.set("rq:job:text", "not a hash")
    client.rpush(NORMAL, "text")
    runs = Runs()
    await enqueue(queue, "1")
    await burst(valkey_url, runs.execute)
    assert runs.ended == [key("1").run_id]
    assert client.llen(NORMAL) == 0
    assert client.zcard("rq:wip:assay-normal") == 0


@pytest.mark.anyio
async def test_a_job_that_stands_in_line_twice_is_executed_once(
    queue: RqRunQueue, client: redis.Redis, valkey_url: str
) -> None:
    runs = Runs(held=True)
    await enqueue(queue, "1")
    client.rpush(NORMAL, job_id(key("1")))
    async with working(valkey_url, runs.execute):
        await runs.until(begun=1)
        runs.release.set()
        await runs.until(ended=1)
    assert runs.begun == [key("1").run_id]
    assert client.llen(NORMAL) == 0


@pytest.mark.parametrize("folder", ["a space", "an=equals", "données", "quote'd & more"])
def test_a_worker_starts_whatever_the_folder_of_its_server_is_called(tmp_path: Path, folder: str) -> None:
    server = start_valkey(tmp_path / folder)
    try:
        assert make_worker(server.url, Runs().execute).ip_address
    finally:
        server.stop()
