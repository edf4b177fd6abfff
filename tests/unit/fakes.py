"""Fakes of the core's ports, for unit tests."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.domain.request import CacheMode
from app.ports import CachedAnswer, Completion, FinishReason, Prompt, Registration, Source, Token
from tests.stub_judge.logprobs import content

Reply = str | dict[str, Any] | Completion | BaseException
Script = Callable[[Prompt], Reply]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class FakeClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds - 1_000)

    def monotonic(self) -> float:
        return self.seconds


class ScriptedModel:
    """A judge that answers each prompt with what a function, or the next entry of a list, says.

    A dict is sent as JSON, a string as it is, a Completion as it is; an exception is raised. `prompts` are the prompts
    it got.
    """

    def __init__(
        self,
        script: Script | Sequence[Reply],
        *,
        context_tokens: int = 8_192,
        max_output_tokens: int = 4_096,
        model_id: str = "fake/judge",
    ) -> None:
        self._script = script if callable(script) else iter(script)
        self.prompts: list[Prompt] = []
        self.id = model_id
        self.identity = f"{model_id}@here"
        self.context_tokens = context_tokens
        self.max_output_tokens = max_output_tokens

    async def complete(self, prompt: Prompt, *, deadline: float, slot: object = None) -> Completion:
        self.prompts.append(prompt)
        reply = self._script(prompt) if callable(self._script) else next(self._script)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Completion):
            return reply
        return completion(reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False), model=self.id)


def completion(text: str, finish: FinishReason = FinishReason.STOP, model: str = "fake/judge") -> Completion:
    """A reply that cost 10 tokens in, 5 out and a cent."""
    return Completion(text, finish, model, input_tokens=10, output_tokens=5, cost_usd=0.01)


Shares = dict[str, dict[str, float]]
"""What is likely in the place of a label."""


def telling(script: Script, shares: Shares) -> Script:
    """Have a judge tell how likely its labels are, where it is asked."""

    def reply(prompt: Prompt) -> Reply:
        said = script(prompt)
        if not isinstance(said, dict | str) or not prompt.logprobs:
            return said
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        told = content(text, shares, prompt.logprobs)
        tokens = [_token(entry)._replace(likeliest=tuple(map(_pair, entry["top_logprobs"]))) for entry in told]
        return replace(completion(text), tokens=tuple(tokens))

    return reply


def _token(entry: dict[str, Any]) -> Token:
    return Token(*_pair(entry))


def _pair(entry: dict[str, Any]) -> tuple[bytes, float]:
    return bytes(entry["bytes"]), math.exp(entry["logprob"])


class DictCache:
    """An answer cache in a dict."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.asked: list[tuple[str, CacheMode]] = []

    async def answer(self, key: str, mode: CacheMode, ask: Callable[[], Awaitable[bytes]]) -> CachedAnswer:
        self.asked.append((key, mode))
        if mode is CacheMode.USE and key in self.stored:
            return CachedAnswer(self.stored[key], Source.CACHE)
        value = await ask()
        if mode is not CacheMode.OFF:
            self.stored[key] = value
        return CachedAnswer(value, Source.LLM)

    async def forget(self, keys: list[str]) -> None:
        for key in keys:
            self.stored.pop(key, None)


class FlyingCache(DictCache):
    """A cache in which equal questions under way at once are asked once."""

    def __init__(self) -> None:
        super().__init__()
        self.locks: dict[str, asyncio.Lock] = {}

    async def answer(self, key: str, mode: CacheMode, ask: Any) -> Any:
        async with self.locks.setdefault(key, asyncio.Lock()):
            return await super().answer(key, mode, ask)


class DictDefinitions:
    """A definition store in a dict."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], str] = {}
        self.versions: dict[tuple[str, str, str], str] = {}
        self.refusal: Registration | None = None

    async def add(self, tenant: str, scorer_id: str, version: str, definition: str) -> Registration:
        if self.refusal is not None:
            return self.refusal
        known = self.versions.setdefault((tenant, scorer_id, version), definition)
        if known is not definition:
            return Registration.SAME if known == definition else Registration.OTHER_BODY
        self.stored[tenant, scorer_id] = definition
        return Registration.NEW

    async def get(self, tenant: str, scorer_id: str) -> str | None:
        return self.stored.get((tenant, scorer_id))

    async def all(self, tenant: str) -> list[str]:
        return [definition for (owner, _), definition in sorted(self.stored.items()) if owner == tenant]

    async def remove(self, tenant: str, scorer_id: str) -> bool:
        return self.stored.pop((tenant, scorer_id), None) is not None


class TelemetryLog:
    """Keeps what it is told, as (name, arguments)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.told.append((name, arguments))

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for told, arguments in self.told if told == name]


def numbers_in(schema: dict[str, Any]) -> list[int]:
    """The item numbers that a reply's schema asks about."""
    (key, part), *_ = schema["properties"].items()
    if key == "labels":
        return [int(number) for number in part["properties"]]
    if "minItems" in part:
        return part["items"]["properties"]["n"]["enum"]
    return part["items"]["enum"]


class Obedient:
    """Answers every prompt as its schema asks; item n gets the label that `choose` picks for its line.

    `choose(line, labels)` returns one of labels; for a selection these are "left" and "taken". A line makes as many
    claims (requirements, questions) as it has parts between semicolons, and none when there is nothing to choose from
    for it ("left"). A verdict cites every passage that may be cited.
    """

    def __init__(self, choose: Callable[[str, list[str]], str]) -> None:
        self._choose = choose

    def __call__(self, prompt: Prompt) -> dict[str, Any]:
        (key, part), *_ = prompt.schema["properties"].items()
        if key == "reason":
            return {"reason": "So it is."}
        lines = {
            int(line[1 : line.index("]")]): line[line.index("]") + 2 :]
            for line in prompt.user.splitlines()
            if line.startswith("[")
        }
        numbers = numbers_in(prompt.schema)
        if key == "labels":
            labels = prompt.schema["$defs"]["label"]["enum"]
            return {key: {str(number): self._choose(lines[number], labels) for number in numbers}}
        if "minItems" not in part:
            return {key: [number for number in numbers if self._choose(lines[number], ["left", "taken"]) == "taken"]}
        properties = dict(part["items"]["properties"])
        if statements := {"claims", "requirements", "questions"} & properties.keys():
            (name,) = statements
            return {key: [{"n": number, name: self._claims(lines[number])} for number in numbers]}
        cited = {"passages": properties.pop("passages")["items"]["enum"]} if "passages" in properties else {}
        fields = {name: field["enum"] for name, field in properties.items() if name not in {"n", "reason"}}
        return {
            key: [
                {
                    "n": number,
                    **cited,
                    "reason": f"Because of {number}.",
                    **{name: self._choose(lines[number], labels) for name, labels in fields.items()},
                }
                for number in numbers
            ]
        }

    def _claims(self, line: str) -> list[str]:
        taken = self._choose(line, ["left", "taken"]) == "taken"
        return [part.strip() for part in line.split(";")] if taken else []
