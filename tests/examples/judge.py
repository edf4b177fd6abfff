"""A chat server that passes calls on to a real judge and records its replies, or answers with recorded ones."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import httpx

from tests.examples.example import Exchange

REPLY_TIMEOUT_S = 600.0
_FENCE_CODE = re.compile(r"evidence-[0-9a-f]{10}")


def digest(messages: Sequence[Mapping[str, str]]) -> str:
    """Return what tells prompts apart wherever they are asked: codes of fences, which are secret, do not count."""
    told = json.dumps([[message["role"], message["content"]] for message in messages])
    return sha256(_FENCE_CODE.sub("evidence-CODE", told).encode()).hexdigest()[:16]


class NotRecorded(Exception):
    """No reply to this prompt was recorded."""


class Replies:
    """Replies recorded earlier, by prompt; `unknown` are the prompts that had none."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._by_prompt = {exchange.prompt: exchange for exchange in exchanges}
        self.unknown: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Exchange:
        """Return the exchange recorded for this prompt."""
        prompt = digest(body["messages"])
        if prompt not in self._by_prompt:
            self.unknown.append(prompt)
            raise NotRecorded
        return self._by_prompt[prompt]


class Recorder:
    """Asks the judge at base_url, and keeps what it replies."""

    def __init__(self, base_url: str) -> None:
        self._client = httpx.Client(base_url=base_url, timeout=REPLY_TIMEOUT_S, trust_env=False)
        self._lock = threading.Lock()
        self.exchanges: dict[str, Exchange] = {}

    def __call__(self, body: dict[str, Any]) -> Exchange:
        """Return what the judge replied, one call at a time."""
        # The reply's form is asked for in the prompt and as plain JSON, which nearly every server understands.
        body = body | {"response_format": {"type": "json_object"}}
        body.pop("logprobs", None)
        body.pop("top_logprobs", None)
        with self._lock:
            answer = self._client.post("/chat/completions", json=body).raise_for_status().json()
        reply = answer["choices"][0]["message"]["content"]
        exchange = Exchange(prompt=digest(body["messages"]), reply=reply, usage=_counts(answer["usage"]))
        self.exchanges[exchange.prompt] = exchange
        return exchange


def _counts(usage: dict[str, Any]) -> dict[str, int]:
    return {name: usage[name] for name in ("prompt_tokens", "completion_tokens")}


class JudgeServer:
    """`with JudgeServer(source) as url:` serves an OpenAI-compatible endpoint whose replies come from source.

    It refuses JSON schemas, as simple servers do, so that the schema stands in the prompt.
    """

    def __init__(self, source: Replies | Recorder) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(source))
        self._thread = threading.Thread(target=self._server.serve_forever, name="recorded judge", daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(source: Replies | Recorder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if body.get("response_format", {}).get("type") == "json_schema":
                return self._answer(400, {"error": {"message": "response_format json_schema is not supported"}})
            try:
                exchange = source(body)
            except NotRecorded:
                return self._answer(400, {"error": {"message": "no reply to this prompt was recorded"}})
            message = {"role": "assistant", "content": exchange.reply}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return self._answer(200, {"model": body["model"], "choices": [choice], "usage": exchange.usage})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
