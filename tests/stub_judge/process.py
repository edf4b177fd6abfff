"""The stub as a process of its own, for tests that need a real server beside real API and worker processes."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import Request, urlopen

import orjson

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 10.0


class StubProcess:
    """`with StubProcess() as stub:` starts it and waits for its URL line; leaving stops it."""

    def __init__(self, *, delay_ms: float = 0.0, port: int = 0) -> None:
        self.command = [sys.executable, "-m", "tests.stub_judge", "--port", str(port), "--delay-ms", str(delay_ms)]
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self.command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"the stub judge did not start: exit status {self.process.wait(PATIENCE_S)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    @property
    def base_url(self) -> str:
        """What ASSAY_JUDGE_BASE_URL takes."""
        return f"{self.url}/v1"

    def script(self, *rules: dict[str, Any]) -> None:
        """Add rules (see script.py)."""
        self.ask("POST", "/script", list(rules))

    def calls(self) -> dict[str, Any]:
        """Return the counts and the last requests."""
        return self.ask("GET", "/calls")

    def reset(self) -> None:
        """Forget rules and calls."""
        self.ask("DELETE", "/calls")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send one control request and return its JSON."""
        data = None if body is None else orjson.dumps(body)
        request = Request(self.url + path, data=data, method=method, headers={"content-type": "application/json"})
        with urlopen(request, timeout=PATIENCE_S) as reply:
            return orjson.loads(reply.read())
