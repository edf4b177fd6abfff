"""The Lua scripts of the `lua` folder, ready to be called."""

from importlib.resources import files
from typing import TYPE_CHECKING

from redis.asyncio import Redis

if TYPE_CHECKING:
    from redis.commands.core import AsyncScript

_FOLDER = files("app.adapters") / "lua"


def script(client: Redis, *names: str) -> "AsyncScript":
    """Return the files of these names, one after the other, as one script; the server learns it when it must."""
    text = "\n".join((_FOLDER / f"{name}.lua").read_text(encoding="utf-8") for name in names)
    return client.register_script(text)
