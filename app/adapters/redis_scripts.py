"""The Lua scripts of a package's `lua` folder, ready to be called."""

from importlib.resources import files
from typing import TYPE_CHECKING

from redis.asyncio import Redis

if TYPE_CHECKING:
    from redis.commands.core import AsyncScript


def script(client: Redis, *names: str, package: str = "app.adapters") -> "AsyncScript":
    """Return the files of these names, one after the other, as one script; the server learns it when it must."""
    folder = files(package) / "lua"
    text = "\n".join((folder / f"{name}.lua").read_text(encoding="utf-8") for name in names)
    return client.register_script(text)
