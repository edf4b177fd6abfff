"""Processes that `assay up` keeps: started again when they die, ended when told, never left behind."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli import child as child_module
from app.cli.child import Child, Command
from app.cli.supervisor import StartFailed, StopSignals, Supervisor
from tests.integration.cli.processes import alive, until

pytestmark = pytest.mark.anyio

LIVES = "import signal; print('up', flush=True); signal.pause()"
LIVES_ON = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
while True: signal.pause()
"""
NOTES_ITS_END = """
import signal, sys
def end(*_):
    with open({log!r}, "a") as log: log.write({name!r} + " ")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
"""
DIES = "import sys; sys.exit('no such thing')"
MISTAKEN = "import sys; print('ASSAY_X: wrong'); sys.exit(2)"

Make = Callable[..., Child]


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def make(tmp_path: Path, reports: list[str]) -> Make:
    """Return a maker of children that run a piece of Python."""

    def make_child(name: str, code: str, grace_s: float = 5.0) -> Child:
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return Child(Command(name, (name,), environment, grace_s), tmp_path / f"{name}.log", reports.append)

    return make_child


async def is_up(child: Child) -> None:
    await until(lambda: child.last_words()[-1:] == ["up"] and child.pid is not None)


async def test_ends_when_told_and_is_not_started_again(make: Make, reports: list[str]) -> None:
    child = make("lives", LIVES)
    keeper = asyncio.create_task(child.keep_running())
    await is_up(child)
    pid = child.pid
    await child.stop()
    await keeper
    assert pid is not None
    assert not alive(pid)
    assert child.last_exit == -signal.SIGTERM
    assert reports == []


async def test_a_deaf_process_is_killed_when_its_grace_is_over(make: Make, reports: list[str]) -> None:
    child = make("deaf", LIVES_ON, grace_s=0.2)
    keeper = asyncio.create_task(child.keep_running())
    await is_up(child)
    await child.stop()
    await keeper
    assert child.last_exit == -signal.SIGKILL
    assert "deaf did not end within 0.2 s" in reports[0]


async def test_a_dead_process_is_started_again_and_said_so(
    make: Make, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "FIRST_DELAY_S", 0.01)
    child = make("lives", LIVES)
    keeper = asyncio.create_task(child.keep_running())
    await is_up(child)
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: child.pid is not None and child.pid != first)
    await child.stop()
    await keeper
    assert child.deaths == 1
    assert "lives was ended by signal 9 (Killed); starting it again" in reports[0]
    assert str(child.log) in reports[0]


async def test_pauses_between_starts_double(make: Make, reports: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(child_module, "LONGEST_DELAY_S", 0.03)
    child = make("dies", DIES)
    keeper = asyncio.create_task(child.keep_running())
    await until(lambda: child.deaths >= 3)
    await child.stop()
    await keeper
    assert [report.split(" in ")[1].split(" s ")[0] for report in reports[:3]] == ["0.01", "0.02", "0.03"]
    assert child.last_words()[-1] == "no such thing"


async def test_a_stop_during_the_pause_is_at_once(make: Make) -> None:
    child = make("dies", DIES)
    keeper = asyncio.create_task(child.keep_running())
    await until(lambda: child.deaths == 1)
    await child.stop()
    await keeper
    assert child.deaths == 1


async def test_a_command_that_can_not_be_started_is_tried_again(
    make: Make, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    child = make("lives", LIVES)
    keeper = asyncio.create_task(child.keep_running())
    await until(lambda: child.deaths == 1)
    await child.stop()
    await keeper
    assert "could not be started (No such file or directory)" in reports[0]


async def test_the_start_is_given_up_for_one_that_keeps_dying(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "FIRST_DELAY_S", 0.01)
    well, ill = make("well", LIVES), make("ill", DIES)
    supervisor = Supervisor([well, ill], ending_order=([well], [ill]), stop=StopSignals())
    supervisor.start()
    with pytest.raises(StartFailed, match="ill does not start") as failed:
        await supervisor.wait_until_ready(never)
    assert failed.value.exit_code == 1
    assert failed.value.last_words[-1] == "no such thing"
    await supervisor.end()
    assert well.pid is None


async def test_a_wrong_setting_ends_the_start_at_once(make: Make) -> None:
    child = make("mistaken", MISTAKEN)
    supervisor = Supervisor([child], ending_order=([child],), stop=StopSignals())
    supervisor.start()
    with pytest.raises(StartFailed) as failed:
        await supervisor.wait_until_ready(never)
    assert (failed.value.exit_code, failed.value.last_words) == (2, ["ASSAY_X: wrong"])
    await supervisor.end()


async def test_groups_end_one_after_another(make: Make, tmp_path: Path) -> None:
    order = tmp_path / "order"
    children = [make(name, NOTES_ITS_END.format(log=str(order), name=name) + LIVES) for name in ("one", "two", "three")]
    supervisor = Supervisor(children, ending_order=[[child] for child in children], stop=StopSignals())
    supervisor.start()
    for child in children:
        await is_up(child)
    await supervisor.end()
    assert order.read_text() == "one two three "


async def test_a_second_signal_ends_all_at_once(make: Make) -> None:
    children = [make(name, LIVES_ON, grace_s=3600) for name in ("one", "two")]
    stop = StopSignals()
    supervisor = Supervisor(children, ending_order=[[child] for child in children], stop=stop)
    supervisor.start()
    for child in children:
        await is_up(child)
    stop.first.set()
    ending = asyncio.create_task(supervisor.end())
    stop.second.set()
    await ending
    assert [child.last_exit for child in children] == [-signal.SIGKILL, -signal.SIGKILL]


async def test_a_stop_while_waiting_to_be_ready_is_no_failure(make: Make) -> None:
    child = make("lives", LIVES)
    stop = StopSignals()
    supervisor = Supervisor([child], ending_order=[[child]], stop=stop)
    supervisor.start()
    await is_up(child)
    waiting = asyncio.create_task(supervisor.wait_until_ready(never))
    os.kill(os.getpid(), signal.SIGTERM)
    assert await waiting is False
    await supervisor.end()


async def never() -> bool:
    return False


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
async def test_a_follower_never_outlives_its_parent(tmp_path: Path, end: signal.Signals) -> None:
    """The follower ignores SIGTERM: it has to be the lifeline that ends it."""
    follower = (
        "import os, signal; from app.lifeline import follow_stdin; "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); follow_stdin(grace_s=0.1); "
        "print(os.getpid(), flush=True)\nwhile True: signal.pause()"
    )
    parent = textwrap.dedent(f"""
        import subprocess, sys
        child = subprocess.Popen(
            [sys.executable, "-c", {follower!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )
        print(child.stdout.readline(), flush=True)
        child.wait()
    """)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", parent, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    assert alive(pid)
    process.send_signal(end)
    await process.wait()
    await until(lambda: not alive(pid))
