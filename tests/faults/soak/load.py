"""Callers of many kinds, and what they were told about every run."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp

CALLERS = 5
RETRY_S = 0.5
PATIENCE_S = 90.0
CALL_S = 90.0
READ_S = 30.0
ENDED = frozenset({"completed", "failed", "not_scorable", "cancelled", "expired"})
RETRYABLE = frozenset({"failed", "expired", "cancelled"})
# Runs that are still to be had under way are among so many of the last.
RECENT = {"cancel": 8, "wait": 20, "events": 20, "repeat": 200}
# What a caller does next, and how often.
ACTIONS = {
    "queued": 50,
    "inline": 18,
    "short": 4,
    "repeat": 8,
    "cancel": 5,
    "retry": 3,
    "delete": 3,
    "wait": 5,
    "events": 4,
}


@dataclass(slots=True)
class Told:
    """What callers know of one run; `ended` is the end that they saw first, since the last retry.

    `busy` while one of them changes it, `unsure` when a retry got no answer.
    """

    run_id: str
    mark: str
    body: dict[str, Any]
    headers: dict[str, str]
    accepted: bool = False
    short: bool = False
    deleted: bool = False
    retried: int = 0
    cancelled: bool = False
    busy: bool = False
    unsure: bool = False
    ended: dict[str, Any] | None = None


@dataclass(slots=True)
class Tally:
    """Counts of answers, and sentences about what must not be."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Load:
    """Sends about `rate` requests a second from `ACTIONS`, for as long as told; the seed decides which."""

    def __init__(self, urls: list[str], seed: int, rate: float) -> None:
        self.urls = urls
        self.rate = rate
        self.chance = random.Random(seed)
        self.tally = Tally()
        self.runs: dict[str, Told] = {}
        self.open: list[Told] = []
        self.in_flight: set[asyncio.Task[None]] = set()

    async def run(self, seconds: float) -> None:
        """Send for so long, then wait for the answers that are still to come."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=CALL_S)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as self.session:
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                await asyncio.sleep(self.chance.expovariate(self.rate))
                task = asyncio.create_task(self.act())
                self.in_flight.add(task)
                task.add_done_callback(self._done)
            if self.in_flight:
                await asyncio.wait(self.in_flight)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.in_flight.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.tally.wrong.append(f"a caller broke: {task.exception()!r}")

    async def act(self) -> None:
        """Do one thing that a caller does."""
        action = self.chance.choices(list(ACTIONS), list(ACTIONS.values()))[0]
        if action in {"queued", "inline", "short"}:
            await self.post(self.new_run(action), action)
            return
        recent = self.open[-RECENT.get(action, len(self.open)) :]
        known = [told for told in self.chance.choices(recent, k=8) if told.accepted] if recent else []
        told = next((one for one in known if not one.deleted and not one.busy and self.suits(action, one)), None)
        if told is not None:
            await getattr(self, action)(told)

    @staticmethod
    def suits(action: str, told: Told) -> bool:
        """Whether it makes sense to do this to that run now."""
        if action == "retry":
            return told.ended is not None and told.ended["status"] in RETRYABLE
        if action in {"cancel", "wait"}:
            return told.ended is None
        return action != "delete" or told.ended is not None

    def new_run(self, action: str) -> Told:
        """Make up a run; its id is the caller's, so that whatever was lost on the way can be asked again."""
        number = len(self.runs)
        mark = f"mark-{self.chance.getrandbits(64):016x}"
        body: dict[str, Any] = {
            "output": f"The village {mark} is always inferior.",
            "mode": "inline" if action == "inline" else "queued",
            "runId": f"soak-{number:07d}",
            "priority": self.chance.choice(["high", "normal", "normal", "bulk"]),
        }
        if action == "short":
            body["timeoutMs"] = self.chance.randrange(50, 3000)
        headers = {"Authorization": f"Bearer caller-{self.chance.randrange(CALLERS)}"}
        if self.chance.random() < 0.3:
            headers["Idempotency-Key"] = f"key-{mark}"
        told = Told(body["runId"], mark, body, headers, short=action == "short")
        self.runs[told.run_id] = told
        self.open.append(told)
        return told

    async def post(self, told: Told, action: str) -> None:
        """Submit it, again with the same identity while nobody says whether it was accepted."""
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            status, answer, _ = await self.call("POST", "/v1/scorers/bias/runs", told, json=told.body)
            if status in {200, 202}:
                told.accepted = True
                self.note(told, answer)
                self.tally.counts[f"{action} accepted"] += 1
                return
            if answer.get("runId"):  # an inline run that failed: accepted and ended
                told.accepted = True
                self.tally.counts[f"{action} failed"] += 1
                return
            if status not in {0, 503}:
                self.tally.wrong.append(f"POST of {told.run_id}: {status} {answer}")
                return
            await asyncio.sleep(RETRY_S)
        self.tally.counts[f"{action} never answered"] += 1

    async def repeat(self, told: Told) -> None:
        """Submit a run a second time; it must be the same run."""
        told.busy = True
        status, answer, headers = await self.call("POST", "/v1/scorers/bias/runs", told, json=told.body)
        told.busy = False
        if status in {200, 202}:
            self.tally.counts["repeated"] += 1
            if (answer["runId"], headers.get("idempotent-replayed")) != (told.run_id, "true"):
                self.tally.wrong.append(f"a repeat of {told.run_id} was accepted as new: {answer['runId']}")

    async def cancel(self, told: Told) -> None:
        """Cancel it."""
        told.busy = True
        status, answer, _ = await self.call("POST", f"/v1/runs/{told.run_id}/cancel", told)
        if status == 200:
            told.cancelled = True
            self.tally.counts["cancelled"] += 1
        told.busy = False
        if status == 200:
            self.note(told, answer)

    async def retry(self, told: Told) -> None:
        """Have a run that ended badly done again; a lost answer is asked for again, as a client would."""
        told.busy = True
        before, told.ended = told.ended, None
        told.retried += 1
        status, _, _ = await self.call("POST", f"/v1/runs/{told.run_id}/retry", told)
        if status == 409:
            told.ended = before
        elif status != 202:
            told.unsure = True
        self.tally.counts[f"retry {status}"] += 1
        told.busy = False

    async def delete(self, told: Told) -> None:
        """Delete an ended run, for good."""
        told.busy = told.deleted = True
        for _ in range(100):
            status, _, _ = await self.call("DELETE", f"/v1/runs/{told.run_id}", told)
            if status in {204, 404}:
                self.tally.counts["deleted"] += 1
                return
            await asyncio.sleep(RETRY_S)

    async def wait(self, told: Told) -> None:
        """Long-poll it."""
        attempt = told.retried
        status, answer, _ = await self.call("GET", f"/v1/runs/{told.run_id}?wait=5", told)
        if status == 200 and attempt == told.retried:
            self.note(told, answer)
            self.tally.counts["waited"] += 1

    async def events(self, told: Told) -> None:
        """Read its events to the end, or as far as they come."""
        await self.call("GET", f"/v1/runs/{told.run_id}/events", told, total_s=READ_S, stream=True)
        self.tally.counts["events"] += 1

    def note(self, told: Told, run: dict[str, Any]) -> None:
        """Remember the end, and complain when an end moves."""
        if run["status"] not in ENDED or told.busy:
            return
        end = {name: run.get(name) for name in ("status", "completedAt", "score")}
        if told.ended is None:
            told.ended = end
        elif told.ended != end and not told.unsure:
            self.tally.wrong.append(f"the end of {told.run_id} moved: {told.ended} became {end}")

    async def call(
        self, method: str, path: str, told: Told, *, total_s: float = CALL_S, stream: bool = False, **options: Any
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Send one request to one of the APIs; status 0 when the connection was lost or refused."""
        url = self.chance.choice(self.urls) + path
        timeout = aiohttp.ClientTimeout(total=total_s)
        try:
            async with self.session.request(method, url, headers=told.headers, timeout=timeout, **options) as reply:
                self.tally.counts[f"HTTP {reply.status}"] += 1
                answer_headers = {name.lower(): value for name, value in reply.headers.items()}
                if stream or reply.status == 204:
                    await reply.read()
                    return reply.status, {}, answer_headers
                return reply.status, await reply.json(content_type=None), answer_headers
        except (aiohttp.ClientError, OSError):
            self.tally.counts["HTTP lost"] += 1
        except TimeoutError:
            self.tally.counts["HTTP timeout"] += 1
            if not stream:
                self.tally.wrong.append(f"{method} {path} was not answered in {total_s:g} s")
        return 0, {}, {}
