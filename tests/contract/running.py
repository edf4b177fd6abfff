"""The real app on a real server in a thread of this process, with a real Valkey and the stub judge behind it."""

import asyncio
import socket
import threading
from types import TracebackType
from typing import Any, Self

import httpx

from app.api.server import AssayServer, server_config
from app.main import create_app
from app.settings import Settings

PATIENCE_S = 20.0
INLINE_WAIT_S = 3.0
MAX_BODY_BYTES = 100_000


def settings_for(redis_url: str, judge_base_url: str | None, **changed: Any) -> Settings:
    """Return settings that read nothing of this machine's environment but the given."""
    fields = {
        "redis_url": redis_url,
        "judge_model": "stub/judge",
        "judge_base_url": judge_base_url,
        "judge_max_retries": 0,
        "inline_wait_s": INLINE_WAIT_S,
        "max_body_bytes": MAX_BODY_BYTES,
        **changed,
    }
    return Settings(_env_file=None, **fields)  # type: ignore[call-arg]


class RunningApp:
    """`with RunningApp(settings) as api:` serves on a free port; leaving stops it as SIGTERM would."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stopping = asyncio.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE_S, trust_env=False)
        app = create_app(settings, stopping=self.stopping)
        self.server = AssayServer(server_config(app, host="", port=0, grace_s=PATIENCE_S), self.stopping)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread = threading.Thread(target=asyncio.run, args=(self._serve(),), name="api", daemon=True)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        await self.server.serve([self.socket])

    def __enter__(self) -> Self:
        self.thread.start()
        # The socket is listening already: the answer comes as soon as the app has started.
        self.client.get("/livez")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self.stop()

    def stop(self) -> None:
        """Stop as SIGTERM would, and wait until it has."""
        if self.loop is not None and self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.server.handle_exit, 15, None)
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive(), "the server did not stop"

    def score(self, scorer: str = "bias", headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        """POST one text to one scorer."""
        return self.client.post(f"/v1/scorers/{scorer}/runs", json=body, headers=headers)
