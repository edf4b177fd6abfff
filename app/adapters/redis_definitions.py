"""Tenants' own scorers in Redis 6.2 or newer. HOME is what all keys of a tenant begin with, see `run_keys`.

==========================  ====  ============================================  ========
key                         type  holds                                         lives
==========================  ====  ============================================  ========
HOME scorers                hash  JSON of the newest definition, by scorer id   for good
HOME scorer-versions:ID     hash  SHA-256 of the definition, by version         for good
==========================  ====  ============================================  ========

Definitions are configuration: they stay until they are deleted. Of older versions only digests are kept, since every
run carries the definition that it was accepted with.
"""

from collections.abc import Awaitable
from hashlib import sha256
from typing import cast

from redis.asyncio import Redis

from app.adapters import run_keys
from app.adapters.redis_client import store_answers
from app.adapters.redis_scripts import script
from app.ports import MAX_OWN_SCORERS, MAX_VERSIONS, Registration


class RedisDefinitionStore:
    """DefinitionStore on the runs' server."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._define = script(client, "define")
        self._undefine = script(client, "undefine")

    async def add(self, tenant: str, scorer_id: str, version: str, definition: str) -> Registration:
        """Make this the scorer's newest definition, unless the version was registered before."""
        keys = run_keys.definition_keys(tenant, scorer_id)
        digest = sha256(definition.encode()).hexdigest()
        async with store_answers():
            became = await self._define(
                keys=keys, args=[scorer_id, version, digest, definition, MAX_OWN_SCORERS, MAX_VERSIONS]
            )
        return Registration(became.decode())

    async def get(self, tenant: str, scorer_id: str) -> str | None:
        """Return the scorer's definition, or None."""
        scorers, _ = run_keys.definition_keys(tenant, scorer_id)
        async with store_answers():
            definition = await cast("Awaitable[bytes | None]", self._client.hget(scorers, scorer_id))
        return None if definition is None else definition.decode()

    async def all(self, tenant: str) -> list[str]:
        """Return the definitions of all scorers of the tenant, in the order of their ids."""
        scorers, _ = run_keys.definition_keys(tenant, "")
        async with store_answers():
            definitions = await cast("Awaitable[dict[bytes, bytes]]", self._client.hgetall(scorers))
        return [definition.decode() for _, definition in sorted(definitions.items())]

    async def remove(self, tenant: str, scorer_id: str) -> bool:
        """Forget a scorer and its versions; False when there was none."""
        keys = run_keys.definition_keys(tenant, scorer_id)
        async with store_answers():
            return bool(await self._undefine(keys=keys, args=[scorer_id]))
