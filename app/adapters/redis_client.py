"""Clients of Redis from URLs, all with the same short patience."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import SecretStr
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app.adapters.command_batches import CommandBatches
from app.domain.errors import StoreUnavailable
from app.settings import SettingsError

# What says that Redis does not serve us now: cut, silent, loading, out of memory or read-only.
REDIS_ERRORS = (RedisError, OSError, TimeoutError)

CONNECT_S = 2.0
OPERATION_S = 2.0
# For what takes several commands.
PATIENCE_S = 4.0
# Redis answers nothing else on a connection while one of these waits.
BLOCKING = frozenset({"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT"})


class PatientRedis(Redis):
    """A client whose every command, connecting and retries included, ends within `operation_s`.

    Commands of one tick of the event loop go out together (see CommandBatches); BLOCKING ones have a connection each.

    Its sockets have no timeout of their own: to bound a write redis-py uses `asyncio.wait_for`, which in Python 3.11
    swallows a cancellation that arrives just as the write is done. A pub/sub connection is its user's to bound.
    """

    def __init__(self, pool: BlockingConnectionPool, operation_s: float) -> None:
        super().__init__(connection_pool=pool)
        self.auto_close_connection_pool = True
        self._operation_s = operation_s
        # A server that was restarted is worth a second try; one that is silent is not. Our scripts bear repetition.
        retry = Retry(ExponentialWithJitterBackoff(cap=0.2, base=0.02), 2, supported_errors=(RedisConnectionError,))
        self._batches = CommandBatches(pool, self.parse_response, retry, operation_s)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command and return its answer; raises RedisError, also when the time is over."""
        try:
            async with asyncio.timeout(self._operation_s):
                if args[0] in BLOCKING:
                    return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
                return await self._batches.execute(args, options)
        except TimeoutError:
            raise RedisTimeoutError("Redis does not answer in time") from None


def connect(
    url: SecretStr | str,
    *,
    variable: str = "ASSAY_REDIS_URL",
    operation_s: float = OPERATION_S,
    max_connections: int = 64,
) -> PatientRedis:
    """Return a client for a redis://, rediss:// or unix:// URL, connected when it is first used.

    `operation_s` must exceed what blocking commands are told to wait.

    Raises SettingsError, which names `variable` and repeats nothing of the URL, when it can't be one.
    """
    text = url.get_secret_value() if isinstance(url, SecretStr) else url
    ours: dict[str, Any] = {
        "max_connections": max_connections,
        "timeout": operation_s,
        "socket_connect_timeout": CONNECT_S,
        "socket_timeout": None,
        "retry": Retry(NoBackoff(), 0),
        "decode_responses": False,
        # RESP3 costs a handshake and brings nothing here.
        "protocol": 2,
        "driver_info": None,
    }
    try:
        pool = BlockingConnectionPool(**{**parse_url(text), **ours})
        # Options of the URL that no connection takes show only when one is made.
        pool.connection_class(**pool.connection_kwargs)
    except (ValueError, TypeError, RedisError):
        raise SettingsError(f"{variable}: takes a redis://, rediss:// or unix:// URL") from None
    return PatientRedis(pool, operation_s)


@asynccontextmanager
async def store_answers(patience_s: float = PATIENCE_S) -> AsyncIterator[None]:
    """Turn every failure of Redis within the block, silence included, into StoreUnavailable."""
    try:
        async with asyncio.timeout(patience_s):
            yield
    except REDIS_ERRORS as error:
        raise StoreUnavailable from error
