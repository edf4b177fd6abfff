"""The Lua scripts of a package's `lua` folder, ready to be called."""

from importlib.resources import files
from typing import TYPE_CHECKING

from redis.asyncio import Redis

if TYPE_CHECKING:
    from redis.commands.core import AsyncScript


PACKAGE = "app.adapters"


def script(client: Redis, *names: str, package: str = PACKAGE) -> "AsyncScript":
    """Return the files of these names, one after the other, as one script; the server learns it when it must.

    What another package lacks is looked for in ours.
    """
    return client.register_script("\n".join(_text(name, package) for name in names))


def _text(name: str, package: str) -> str:
    file = files(package) / "lua" / f"{name}.lua"
    if not file.is_file():
        file = files(PACKAGE) / "lua" / f"{name}.lua"
    return file.read_text(encoding="utf-8")
