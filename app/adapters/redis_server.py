"""What a Redis that keeps runs must be: new enough, and not one that drops keys to make room."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import structlog
from redis.asyncio import Redis

from app.adapters.redis_client import REDIS_ERRORS
from app.settings import SettingsError

log = structlog.get_logger()

OLDEST = (6, 2)
NO_EVICTION = "noeviction"


class RedisServer(NamedTuple):
    """What a server says of itself; `policy` is how it makes room at `maxmemory` bytes (0: no limit)."""

    version: str
    policy: str
    maxmemory: int
    appends: bool

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Self:
        """Read the answer to INFO."""
        return cls(
            version=str(info.get("valkey_version") or info.get("redis_version", "0")),
            policy=str(info.get("maxmemory_policy", "unknown")),
            maxmemory=int(info.get("maxmemory", 0)),
            appends=bool(info.get("aof_enabled")),
        )

    @property
    def too_old(self) -> bool:
        """Whether it lacks commands that we use."""
        return tuple(int(part) for part in self.version.split(".")[:2] if part.isdigit()) < OLDEST

    @property
    def might_evict(self) -> bool:
        """Whether it would drop keys, were there a limit of its memory."""
        return self.policy != NO_EVICTION

    @property
    def evicts(self) -> bool:
        """Whether it drops keys when its memory is full."""
        return self.might_evict and self.maxmemory > 0


async def refuse_unfit(client: Redis) -> None:
    """Raise SettingsError when ASSAY_REDIS_URL is a server that may lose runs; one that is away, or mute, is let be."""
    try:
        server = RedisServer.of(await client.info())
    except REDIS_ERRORS as error:
        log.warning("redis_not_checked", error=type(error).__name__)
        return
    if server.too_old:
        raise SettingsError(f"ASSAY_REDIS_URL: version {server.version} is too old; Redis 6.2 or Valkey is needed")
    if server.evicts:
        raise SettingsError(
            f"ASSAY_REDIS_URL: this Redis may drop runs (maxmemory-policy {server.policy}); "
            f"set its maxmemory-policy to {NO_EVICTION}"
        )
    if server.might_evict:
        log.warning("redis_may_evict", policy=server.policy, set=f"maxmemory-policy {NO_EVICTION}")
