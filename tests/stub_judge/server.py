"""The stub's HTTP: asyncio.Protocol and httptools, so that it costs less than what it measures."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httptools
import orjson

from tests.stub_judge.answers import instance
from tests.stub_judge.door import Door
from tests.stub_judge.ledger import Entry, Ledger
from tests.stub_judge.logprobs import content
from tests.stub_judge.script import Rule, Script

KEPT_CALLS = 2_000
COMPLETIONS = "/chat/completions"
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}
REFUSAL = "I'm sorry, but I can't help with that."


class StubJudge:
    """The state of one stub: its script and what it was asked; `asked` is set by the first call."""

    def __init__(self, delay_ms: float = 0.0) -> None:
        self.delay_ms = delay_ms
        self.script = Script()
        self.url = ""
        self.control_url = ""
        self.doors: list[Door] = []
        self.open_connections: set[StubProtocol] = set()
        self.reset()

    def reset(self) -> None:
        """Forget the script and all calls."""
        self.script.clear()
        self.total = 0
        self.tokens = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.connections = 0
        self.kept: deque[Call] = deque(maxlen=KEPT_CALLS)
        self.ledger = Ledger()
        self.asked = asyncio.Event()

    def close_connections(self, kept: "StubProtocol | None" = None) -> None:
        """Cut every connection but one, as a server does that restarts or tires of idle clients."""
        for protocol in self.open_connections - {kept}:
            protocol.transport.abort()

    async def go_down(self, kept: "StubProtocol") -> None:
        """Be away, as a server that is down: connections are cut and refused; the control port goes on."""
        self.doors[0].shut()
        self.close_connections(kept)

    async def come_back(self) -> None:
        """Listen again, on the same port."""
        await self.doors[0].open()

    def calls(self) -> dict[str, Any]:
        """Return the counts and the last requests, as `GET /calls` shows them."""
        return {
            "total": self.total,
            "tokens": self.tokens,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "connections": self.connections,
            "requests": [call.as_json() for call in self.kept],
        }


class Call:
    """One request to the judge."""

    __slots__ = ("at", "body", "headers", "path")

    def __init__(self, path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.at = time.monotonic()
        self.path = path
        self.headers = headers
        self.body = body

    def as_json(self) -> dict[str, Any]:
        """Return path, headers (lower case), body and the monotonic second it came at."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self.headers}
        return {"at": self.at, "path": self.path, "headers": headers, "body": _loads(self.body)}


class StubProtocol(asyncio.Protocol):
    """One connection; requests on it are answered in turn."""

    def __init__(self, stub: StubJudge) -> None:
        self.stub = stub
        self.loop = asyncio.get_running_loop()
        self.parser = httptools.HttpRequestParser(self)
        self.pending: asyncio.TimerHandle | None = None
        self.answering = False
        self.entry: Entry | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.stub.connections += 1
        self.stub.open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.pending is not None:
            self.pending.cancel()
        self.finished("gone")
        self.stub.open_connections.discard(self)

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.close()

    def on_message_begin(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.chunks: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, chunk: bytes) -> None:
        self.chunks.append(chunk)

    def on_message_complete(self) -> None:
        method = self.parser.get_method().decode()
        target = urlsplit(self.target.decode("latin-1"))
        body = b"".join(self.chunks)
        if method == "POST" and target.path.endswith(COMPLETIONS):
            self.complete(target.path, body)
        elif target.path == "/ledger":
            self.send(200, self.stub.ledger.as_json(int(parse_qs(target.query).get("since", ["0"])[0])))
        elif method == "POST" and target.path in {"/down", "/up"}:
            moving = self.stub.go_down(self) if target.path == "/down" else self.stub.come_back()
            self.loop.create_task(moving).add_done_callback(lambda _: self.send(200, {}))
        else:
            self.control(method, target.path, body)

    def control(self, method: str, path: str, body: bytes) -> None:
        """Answer what is about the script, the calls and the models."""
        if path == "/v1/models":
            self.send(200, {"object": "list", "data": [{"id": "stub", "object": "model", "owned_by": "tests"}]})
        elif path == "/script" and method == "POST":
            try:
                self.stub.script.add(json.loads(body))
            except (ValueError, TypeError) as error:
                self.send(400, {"error": str(error)})
                return
            self.send(200, {"rules": len(self.stub.script.rules)})
        elif path == "/script" and method == "DELETE":
            self.stub.script.clear()
            self.send(200, {"rules": 0})
        elif path == "/calls" and method in {"GET", "DELETE"}:
            if method == "DELETE":
                self.stub.reset()
            self.send(200, self.stub.calls())
        else:
            self.send(404, {"error": {"message": f"no such path: {method} {path}"}})

    def complete(self, path: str, raw: bytes) -> None:
        """Take one judge call and answer it, now or after its delay."""
        stub = self.stub
        stub.total += 1
        stub.asked.set()
        stub.in_flight += 1
        stub.max_in_flight = max(stub.max_in_flight, stub.in_flight)
        self.answering = True
        stub.kept.append(Call(path, self.headers, raw))
        body = _loads(raw)
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            self.send(400, {"error": {"message": "send messages"}})
            return
        system, user = _texts(body["messages"])
        self.entry = stub.ledger.begin(body, user)
        rule = stub.script.choose(body, f"{system}\n\n{user}")
        delay_ms = stub.delay_ms if rule.delay_ms is None else rule.delay_ms
        if rule.hang:
            return
        if delay_ms:
            self.pending = self.loop.call_later(delay_ms / 1000, self.answer, rule, body, system, user)
        else:
            self.answer(rule, body, system, user)

    def answer(self, rule: Rule, body: dict[str, Any], system: str, user: str) -> None:
        """Send what the rule says."""
        self.pending = None
        if rule.drop == "before":
            self.finished("dropped")
            self.transport.abort()
        elif rule.status is not None or rule.body is not None:
            self.send(rule.status or 200, rule.body if rule.body is not None else {}, rule)
        else:
            completion = _completion(rule, body, system, user)
            self.stub.tokens += completion["usage"]["total_tokens"]
            self.send(200, completion, rule)

    def send(self, status: int, body: Any, rule: Rule | None = None) -> None:
        """Write one answer; a body that is a string goes out as it is."""
        self.finished("dropped" if rule is not None and rule.drop else status)
        data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else _dumps(body)
        headers = {"content-type": "application/json", **(rule.headers if rule else {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\n{lines}content-length: {len(data)}\r\n\r\n"
        if rule is not None and rule.drop == "mid_body":
            self.transport.write(head.encode("latin-1") + data[: len(data) // 2])
            self.transport.close()
            return
        self.transport.write(head.encode("latin-1") + data)
        if not self.parser.should_keep_alive():
            self.transport.close()

    def finished(self, outcome: int | str) -> None:
        """Count a judge call as ended, once."""
        if self.answering:
            self.answering = False
            self.stub.in_flight -= 1
        if self.entry is not None:
            self.entry.end(outcome)
            self.entry = None


def _loads(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw.decode("utf-8", "replace")


def _dumps(body: Any) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:  # a script may ask for half a surrogate pair
        return json.dumps(body).encode()


def _texts(messages: list[Any]) -> tuple[str, str]:
    by_role: dict[str, list[str]] = {"system": [], "user": []}
    for message in messages:
        role = "system" if message.get("role") in {"system", "developer"} else "user"
        by_role[role].append(str(message.get("content")))
    return "\n".join(by_role["system"]), "\n".join(by_role["user"])


def _completion(rule: Rule, body: dict[str, Any], system: str, user: str) -> dict[str, Any]:
    text = _content(rule, body, system, user)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    finish = "stop"
    if rule.refuse:
        message = {"role": "assistant", "content": None, "refusal": REFUSAL}
    elif rule.empty:
        message["content"] = ""
    elif rule.cut:
        message["content"], finish = text[: len(text) // 2], "length"
    logprobs = None
    if rule.logprobs is not None and body.get("logprobs"):
        logprobs = {"content": content(message["content"] or "", rule.logprobs, body.get("top_logprobs", 0))}
    tokens_in, tokens_out = (len(system) + len(user)) // 4, len(text) // 4
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "stub"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": logprobs}],
        "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out},
    }


def _content(rule: Rule, body: dict[str, Any], system: str, user: str) -> str:
    if rule.reply is not None:
        return rule.reply
    reply = instance(_schema(body, f"{system}\n{user}"), user)
    if rule.miscount is not None:
        _miscount(reply, rule.miscount)
    text = orjson.dumps(reply).decode()
    if rule.fence:
        text = f"```json\n{text}\n```"
    if rule.think:
        text = f'<think>\nMaybe {{"verdicts": []}}? No.\n</think>\n\n{text}'
    return text


def _schema(body: dict[str, Any], prompt: str) -> dict[str, Any]:
    """Return the schema of response_format, or the one that the prompt describes, or an empty one."""
    wanted = (body.get("response_format") or {}).get("json_schema")
    if wanted is not None:
        return dict(wanted["schema"])
    start = prompt.find('{"', prompt.find("JSON schema"))
    while start >= 0:
        try:
            found, _ = json.JSONDecoder().raw_decode(prompt, start)
        except ValueError:
            found = None
        if isinstance(found, dict) and "type" in found:
            return found
        start = prompt.find('{"', start + 1)
    return {"type": "object"}


def _miscount(reply: Any, how: str) -> None:
    items = next((value for value in reply.values() if isinstance(value, list) and value), None)
    if items is None:
        return
    if how == "drop":
        items.pop()
    elif how == "duplicate":
        items.append(items[0])
    else:
        last = items[-1]
        extra = {k: v + 1 if isinstance(v, int) else v for k, v in last.items()} if isinstance(last, dict) else last + 1
        items.append(extra)


@asynccontextmanager
async def running_stub(host: str = "127.0.0.1", port: int = 0, delay_ms: float = 0.0) -> AsyncIterator[StubJudge]:
    """Serve a stub in this loop; `url` is the base URL without /v1, `control_url` answers while the judge is down."""
    stub = StubJudge(delay_ms)
    stub.doors = [Door(lambda: StubProtocol(stub), host, port), Door(lambda: StubProtocol(stub), host, 0)]
    for door in stub.doors:
        await door.open()
    stub.url, stub.control_url = (f"http://{host}:{door.port}" for door in stub.doors)
    try:
        yield stub
    finally:
        for door in stub.doors:
            door.shut()
        stub.close_connections()
        await asyncio.sleep(0)
