"""RQ's part of Redis in a form in which two workers' doings can be compared."""

import re
from typing import Any

import redis

MOMENTS = {"created_at", "enqueued_at", "started_at", "ended_at", "last_heartbeat", "birth", "death"}
MEASURED = {"ip_address", "pid", "total_working_time", "execution_started_at", "execution_ended_at", "exc_string"}
EXECUTION = re.compile(r"[0-9a-f]{32}(-\d+)?")
# What RQ's own maintenance, which ours does without, locks.
LOCKS = re.compile(r"rq:clean_\w+(:.*)?")


def keyspace(client: redis.Redis) -> dict[str, tuple[Any, ...]]:
    """Return for every key its type, whether it expires, and what it holds without ids of executions and moments."""
    found = {}
    for raw in client.scan_iter():
        name = raw.decode()
        if not LOCKS.fullmatch(name):
            kind = client.type(raw).decode()
            found[_nameless(name)] = (kind, client.ttl(raw) >= 0, _content(client, name, kind))
    return found


def _content(client: redis.Redis, name: str, kind: str) -> Any:
    match kind:
        case "hash":
            return _values(client.hgetall(name))
        case "list":
            return [_nameless(item.decode()) for item in client.lrange(name, 0, -1)]
        case "set":
            return sorted(_nameless(item.decode()) for item in client.smembers(name))
        case "zset":
            return sorted(_nameless(item.decode()) for item in client.zrange(name, 0, -1))
        case "stream":
            return [_values(entry) for _, entry in client.xrange(name)]
    raise AssertionError(f"RQ keeps no {kind}")


def _values(raw: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): _value(name.decode(), value) for name, value in raw.items()}


def _value(name: str, value: bytes) -> str:
    if name in MOMENTS | MEASURED:
        return "something" if value else "nothing"
    return _nameless(value.decode("latin-1"))


def _nameless(text: str) -> str:
    return EXECUTION.sub("EXECUTION", text)
