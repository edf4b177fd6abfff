"""A worker loads the one job that the queue makes, and nothing that only resembles it."""

import pickle
import zlib
from typing import Any

import pytest
import redis
from rq.job import Job
from rq.serializers import JSONSerializer

from tests.unit.worker.job_hashes import fields, packed
from worker.jobs import AllowedJob, JobRefused, execute, executor

CANARY = "a sentence that must not be told"


def loaded(raw: dict[bytes, bytes]) -> AllowedJob:
    job = AllowedJob("some-job", connection=redis.Redis(), serializer=JSONSerializer)
    job.restore(raw)
    return job


class Bomb:
    """Unpickling it fails the test."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a pickle was loaded",)


def test_the_queues_own_job_is_loaded() -> None:
    job = loaded(fields())
    assert job.func is execute
    assert job.args == ["default", "run-00000001"]
    assert job.timeout == 310


@pytest.mark.parametrize("function", ["os.system", "builtins.eval", "worker.jobs.executor.set", "execute", "", None, 7])
def test_other_functions_are_refused(function: Any) -> None:
    with pytest.raises(JobRefused):
        loaded(fields(data=packed(function, None, ["default", "run-00000001"], {})))


@pytest.mark.parametrize(
    ("instance", "args", "kwargs"),
    [
        ("an instance", ["default", "run-00000001"], {}),
        (None, ["default"], {}),
        (None, ["default", "run-00000001", CANARY], {}),
        (None, ["default", ""], {}),
        (None, ["default", 7], {}),
        (None, ["default", ["run-00000001"]], {}),
        (None, ["default", "r" * 1000], {}),
        (None, {"tenant": "default", "run_id": "run-00000001"}, {}),
        (None, "ab", {}),
        (None, None, {}),
        (None, ["default", "run-00000001"], {"text": CANARY}),
        (None, ["default", "run-00000001"], None),
    ],
)
def test_other_arguments_are_refused(instance: Any, args: Any, kwargs: Any) -> None:
    with pytest.raises(JobRefused):
        loaded(fields(data=packed("worker.jobs.execute", instance, args, kwargs)))


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\x00\xff",
        pickle.dumps(("worker.jobs.execute", None, ("default", "run-00000001"), {})),
        zlib.compress(pickle.dumps(Bomb())),
        zlib.compress(b"null"),
        zlib.compress(b"[" * 100_000),
        zlib.compress(b"\xff"),
        packed("worker.jobs.execute", None, ["default", "run-00000001"]),
        packed("worker.jobs.execute", None, ["default", "run-00000001"], {}, 5),
        zlib.compress(b'["worker.jobs.execute", null, ["default", "run-00000001"], {}]' + b" " * 10_000_000),
    ],
)
def test_other_data_is_refused(data: bytes | None) -> None:
    with pytest.raises(JobRefused):
        loaded(fields(data=data))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("success_callback_name", b"os.system"),
        ("failure_callback_name", b"builtins.print"),
        ("stopped_callback_name", b"worker.jobs.execute"),
        ("webhooks", b'[{"url": "https://example.com/hook", "job_status": "failed"}]'),
        ("dependency_ids", b'["another-job"]'),
        ("dependency_id", b"another-job"),
        ("group_id", b"a-group"),
        ("repeats_left", b"5"),
        ("rate_limit_key", b"a-key"),
        ("meta", b'{"text": "something"}'),
        ("meta", pickle.dumps(Bomb())),
        ("result", b'"something"'),
        ("result_ttl", b"500"),
        ("result_ttl", None),
        ("failure_ttl", b"31536000"),
        ("failure_ttl", b"-1"),
        ("failure_ttl", None),
        ("retries_left", b"1000"),
        ("retries_left", b"-2"),
        ("timeout", b"-1"),
        ("timeout", None),
        ("timeout", b"for ever"),
        ("status", b"ready to strike"),
        ("created_at", b"yesterday"),
        ("origin", b"\xff"),
        ("retry_intervals", b"{"),
    ],
)
def test_other_settings_are_refused(name: str, value: bytes | None) -> None:
    with pytest.raises(JobRefused):
        loaded(fields(**{name: value}))


def test_a_refusal_tells_nothing_of_the_job() -> None:
    with pytest.raises(JobRefused) as refusal:
        loaded(fields(data=None, description=CANARY.encode()))
    assert CANARY not in str(refusal.value)
    assert refusal.value.__suppress_context__


def test_rqs_own_class_would_have_loaded_a_forged_job() -> None:
    job = Job("some-job", connection=redis.Redis(), serializer=JSONSerializer)
    job.restore(fields(data=packed("os.system", None, ["true"], {})))
    assert job.func_name == "os.system"


@pytest.mark.anyio
async def test_execute_runs_what_the_context_holds() -> None:
    seen: list[tuple[str, str]] = []

    async def note(tenant: str, run_id: str) -> None:
        seen.append((tenant, run_id))

    token = executor.set(note)
    await execute("default", "run-00000001")
    executor.reset(token)
    assert seen == [("default", "run-00000001")]
