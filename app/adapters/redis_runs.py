"""The run store in Redis 6.2 or newer.

All keys of a tenant begin with `assay:{TENANT}:`, called HOME here (see `run_keys`).

====================================  ======  =================================================  ===================
key                                   type    holds                                              lives
====================================  ======  =================================================  ===================
HOME run:ID                           hash    the run, fields below                              run_ttl
HOME request:ID                       string  JSON of the RunRequest, while it is kept           as the run
HOME events:ID                        stream  `event` and `data` of `/events`                    as the run
HOME runs                             zset    every run                                          run_ttl, refreshed
HOME runs:scorer:SCORER               zset    the scorer's runs                                  run_ttl, refreshed
HOME runs:status:STATUS               zset    runs in that status                                run_ttl, refreshed
HOME runs:metadata:DIGEST             zset    runs with that name and value                      run_ttl, refreshed
HOME idempotency:DIGEST               string  JSON: fingerprint, run ids                         idempotency_ttl
assay:fence-key                       string  32 random bytes                                    for good
assay:due                             zset    runs that have not ended, by when to look at them  for good
assay:sweeping                        string  that somebody does so now                          seconds
assay:writable                        string  that a write was taken                             seconds
====================================  ======  =================================================  ===================

Fields of a run: `body` (JSON of the Run), `status`, `fingerprint`,
`token` (counts claims: the highest is the valid one), `lease_us` (end of its lease on the server's clock), `losses`
(claims whose lease ended, since it was last asked for), `deadline_ms`, `operation` (the last change's own id, so that a
repeated command is known), `repeated` (its request came again before it ended), and for DELETE: `member`, `indexes`,
`idempotency`, `cache_keys`.

Every change is one script, which checks the arrow, writes, moves the run between the indexes by status and in the due
index, adds the event and publishes on `assay:changed`. A run that is tried again after most of its life drops out of
lists, not out of reach.
"""

import json
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python
from redis.asyncio import Redis

from app.adapters import run_keys
from app.adapters.clock import SystemClock
from app.adapters.redis_client import store_answers
from app.adapters.redis_scripts import script
from app.domain.errors import StoreUnavailable
from app.domain.request import RunRequest
from app.domain.run import MAX_HISTORY, MAX_LOSSES, SUSPECT_LOSSES, Run, RunEvent, RunStatus
from app.ports import (
    Claim,
    Clock,
    Created,
    Due,
    ListQuery,
    NewRun,
    Page,
    Remembered,
    RunKey,
    RunSuspected,
    StepEnd,
    StoredRun,
)

PING_S = 1.0
WRITABLE_S = 60
# Members looked at for one page of a filtered list, however few of them match.
LIST_BUDGET = 2_000
STORED_FIELDS = ["body", "status", "fingerprint"]
RUN_SCRIPTS = ("create", "claim", "renew", "checkpoint", "finish", "release", "cancel", "requeue", "delete")
EVENT_ID = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")


class RedisRunStore:
    """RunStore over one Redis; every failure of it, silence included, is StoreUnavailable within seconds."""

    def __init__(self, client: Redis, *, run_ttl_s: int, idempotency_ttl_s: int, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._run_ttl_ms = run_ttl_s * 1000
        self._idempotency_ttl_s = idempotency_ttl_s
        self._scripts = {name: script(client, "run", name) for name in RUN_SCRIPTS}
        self._scripts["withdraw"] = script(client, "run", "withdraw", "delete")
        self._list = script(client, "list")
        self._due = script(client, "due")
        self._fence_key: bytes | None = None

    async def create(self, new: NewRun, *, claim_lease_s: float | None = None) -> tuple[Created, Claim | None]:
        """Store a run unless its id exists; with a lease, store it as running and claimed by this caller at once."""
        run = _in_status(new.run, RunStatus.QUEUED if claim_lease_s is None else RunStatus.RUNNING)
        record = run_keys.idempotency_record(new.key.tenant, new.idempotency_key) if new.idempotency_key else ""
        is_new, *stored = await self._change(
            "create",
            new.key,
            run.model_dump_json(by_alias=True),
            new.request.model_dump_json(by_alias=True),
            run.status.value,
            new.fingerprint,
            run_keys.member(run),
            record,
            _milliseconds(claim_lease_s or 0),
            run_keys.deadline_ms(run),
            *run_keys.indexes_of(new.key.tenant, run),
        )
        claimed = is_new and claim_lease_s is not None
        claim = Claim(key=new.key, token=1, run=run, request=new.request) if claimed else None
        return Created(new=bool(is_new), stored=_stored(stored)), claim

    async def get(self, key: RunKey) -> StoredRun | None:
        """Return the run, or None."""
        async with store_answers():
            fields = await self._client.hmget(run_keys.run_keys(key)[0], STORED_FIELDS)
        return None if fields[0] is None else _stored(fields)

    async def get_request(self, key: RunKey) -> RunRequest | None:
        """Return what the run was asked to do, or None when it is not kept."""
        async with store_answers():
            body = await self._client.get(run_keys.run_keys(key)[1])
        return None if body is None else RunRequest.model_validate_json(body)

    async def claim(self, key: RunKey, lease_s: float, *, alone: bool = False, take_over: bool = True) -> Claim | None:
        """Begin an attempt at a queued run, or with take_over at a running one whose lease ended; None without one.

        Raises RunSuspected for a suspect that is not claimed `alone`. What was lost MAX_LOSSES times is claimed without
        an attempt, for its end to be written.
        """
        limits = (SUSPECT_LOSSES, MAX_LOSSES, MAX_HISTORY)
        taken = await self._change(
            "claim", key, _milliseconds(lease_s), int(alone), int(take_over), self._now(), *limits
        )
        if taken is None:
            return None
        if taken == b"suspect":
            raise RunSuspected
        token, losses, is_lost, run, request = taken
        return Claim(
            key,
            token,
            Run.model_validate_json(run),
            RunRequest.model_validate_json(request),
            losses=losses,
            taken_over=bool(is_lost),
        )

    async def renew(self, claim: Claim, lease_s: float) -> bool:
        """Extend the lease; False when the claim is no longer valid (cancelled, taken over, deleted)."""
        return bool(await self._change("renew", claim.key, claim.token, _milliseconds(lease_s)))

    async def checkpoint(self, claim: Claim, run: Run, event: str | None, cache_keys: Sequence[str] = ()) -> bool:
        """Keep a running run as it is now, and more keys it may have cached answers under; False as for renew.

        With `event`, the name of the step that ended, listeners are told and the event is kept.
        """
        body = _in_status(run, RunStatus.RUNNING).model_dump_json(by_alias=True)
        data = "" if event is None else _step_event(event, body)
        return bool(await self._change("checkpoint", claim.key, claim.token, body, data, _lines(cache_keys)))

    async def finish(
        self, claim: Claim, run: Run, *, cache_keys: Sequence[str], keep_request: bool, last_step: StepEnd | None = None
    ) -> bool:
        """Write the end state, once; False when the claim is no longer valid and nothing was written.

        `last_step` is a step that ended just before and was not written by checkpoint.
        """
        if not run.status.ended:
            raise ValueError("a run finishes in an end state")
        written = await self._change(
            "finish",
            claim.key,
            claim.token,
            run.model_dump_json(by_alias=True),
            run.status.value,
            _lines(cache_keys),
            int(keep_request),
            "" if last_step is None else _step_event(last_step.event, last_step.run.model_dump_json(by_alias=True)),
        )
        return bool(written)

    async def release(self, claim: Claim, cache_keys: Sequence[str] = ()) -> bool:
        """Give a running run back as queued, its partial results kept."""
        return bool(await self._change("release", claim.key, claim.token, _lines(cache_keys), self._now()))

    async def cancel(self, key: RunKey, now: datetime) -> StoredRun | None:
        """End a queued or running run as cancelled; returns the run as it stands then, None when unknown."""
        stored = await self._change("cancel", key, _json_of(now))
        return None if stored is None else _stored(stored)

    async def requeue(self, key: RunKey, run: Run) -> bool:
        """Replace an ended run by `run` (queued, no losses); False when it is not ended or not there.

        A completed or not scorable run is not tried again: False too.
        """
        body = _in_status(run, RunStatus.QUEUED).model_dump_json(by_alias=True)
        return bool(await self._change("requeue", key, body, run_keys.deadline_ms(run)))

    async def delete(self, key: RunKey) -> list[str] | None:
        """Remove every trace; returns the cache keys the run wrote, None when it was unknown."""
        cache_keys: bytes | None = await self._change("delete", key)
        return None if cache_keys is None else list(dict.fromkeys(cache_keys.decode().split()))

    async def withdraw(self, key: RunKey) -> bool:
        """Remove a run that its caller is told was not accepted; False when its request was repeated meanwhile."""
        return await self._change("withdraw", key) is not None

    async def due(self, limit: int, pause_s: float) -> list[Due]:
        """Return runs that have not ended and that nobody has shown to be in hand, and put them off for pause_s."""
        async with store_answers():
            found = await self._due(keys=[run_keys.DUE], args=[limit, _milliseconds(pause_s)])
        return [
            Due(key, run_keys.moment(deadline_ms))
            for run, deadline_ms in zip(found[::2], found[1::2], strict=True)
            if (key := run_keys.key_of(run.decode(errors="replace"))) is not None
        ]

    async def may_sweep(self, every_s: float) -> bool:
        """Return True to one process of all, once in every_s seconds."""
        async with store_answers():
            taken = await self._client.set(run_keys.SWEEPING, 1, nx=True, px=_milliseconds(every_s))
        return taken is not None

    async def list_page(self, query: ListQuery) -> Page:
        """Return a page of runs; raises InvalidRequest for a cursor that is not ours.

        A page may be short, or empty, with more to come: the work for one page is bounded.
        """
        upper, lower = run_keys.bounds(query)
        arguments = (run_keys.home(query.tenant), query.limit, LIST_BUDGET, upper, lower)
        async with store_answers():
            after, *bodies = await self._list(keys=run_keys.indexes_for(query), args=arguments)
        return Page(bodies, None if after is None else run_keys.cursor(after))

    async def events(self, key: RunKey, after: str | None) -> list[RunEvent]:
        """Return the run's events after that id (all when None or not an id of ours), oldest first."""
        start = f"({after}" if after is not None and EVENT_ID.fullmatch(after) else "-"
        async with store_answers():
            entries: Any = await self._client.xrange(run_keys.run_keys(key)[2], min=start)
        return [
            RunEvent(id=id_.decode(), event=fields[b"event"].decode(), data=fields[b"data"].decode())
            for id_, fields in entries
        ]

    async def remember(
        self, tenant: str, idempotency_key: str, fingerprint: str, run_ids: tuple[str, ...]
    ) -> Remembered:
        """Tie an Idempotency-Key to these run ids, or return what it is tied to already."""
        record = run_keys.idempotency_record(tenant, idempotency_key)
        ours = json.dumps({"fingerprint": fingerprint, "runIds": run_ids})
        async with store_answers():
            await self._client.set(record, ours, nx=True, ex=self._idempotency_ttl_s)
        known = await self.recall(tenant, idempotency_key)
        if known is None:
            raise StoreUnavailable
        return known

    async def recall(self, tenant: str, idempotency_key: str) -> Remembered | None:
        """Return what an Idempotency-Key is tied to, or None."""
        async with store_answers():
            kept = await self._client.get(run_keys.idempotency_record(tenant, idempotency_key))
        if kept is None:
            return None
        known = json.loads(kept)
        return Remembered(fingerprint=known["fingerprint"], run_ids=tuple(known["runIds"]))

    async def fence_key(self) -> bytes:
        """Return the secret that fences are made with: 32 random bytes, made once and shared by all processes."""
        if self._fence_key is None:
            async with store_answers():
                await self._client.set(run_keys.FENCE_KEY, secrets.token_bytes(32), nx=True)
                kept: Any = await self._client.get(run_keys.FENCE_KEY)
            if kept is None:
                raise StoreUnavailable
            self._fence_key = bytes(kept)
        return self._fence_key

    async def ping(self) -> None:
        """Raise StoreUnavailable unless the server takes a write within a second; full ones and replicas do not."""
        async with store_answers(PING_S):
            await self._client.set(run_keys.WRITABLE, 1, ex=WRITABLE_S)

    def _now(self) -> str:
        return _json_of(self._clock.now())

    async def _change(self, name: str, key: RunKey, *arguments: str | int) -> Any:
        operation = secrets.token_hex(8)
        common = (run_keys.home(key.tenant), key.run_id, operation, self._run_ttl_ms)
        async with store_answers():
            return await self._scripts[name](keys=[*run_keys.run_keys(key), run_keys.DUE], args=(*common, *arguments))


def _in_status(run: Run, status: RunStatus) -> Run:
    return run if run.status is status else run.model_copy(update={"status": status})


def _stored(fields: list[Any]) -> StoredRun:
    body, status, fingerprint = fields
    return StoredRun(body, RunStatus(status.decode()), fingerprint.decode())


def _lines(keys: Sequence[str]) -> str:
    return "".join(f"{key}\n" for key in keys)


def _step_event(step: str, body: str) -> str:
    return f'{{"step":{json.dumps(step)},"run":{body}}}'


def _json_of(moment: datetime) -> str:
    return json.dumps(to_jsonable_python(moment))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
