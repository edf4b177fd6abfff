"""The stub as a process of its own, for tests that need a real server beside real API and worker processes."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.request import Request, urlopen

import orjson

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 10.0


class Call(NamedTuple):
    """One call in short: Unix seconds, the mark of its text, the name of its step, and how it went."""

    began: float
    ended: float | None
    mark: str
    step: str
    outcome: int | str | None


class StubProcess:
    """`with StubProcess() as stub:` starts it and waits for its URL line; leaving stops it."""

    def __init__(self, *, delay_ms: float = 0.0, port: int = 0) -> None:
        self.command = [sys.executable, "-m", "tests.stub_judge", "--port", str(port), "--delay-ms", str(delay_ms)]
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.control_url = ""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self.command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline().split()
        if not line:
            raise RuntimeError(f"the stub judge did not start: exit status {self.process.wait(PATIENCE_S)}")
        self.url, self.control_url = line
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

    def unscript(self) -> None:
        """Forget rules; calls are kept."""
        self.ask("DELETE", "/script")

    def ledger(self, since: int = 0) -> list[Call]:
        """Return all calls in short (see ledger.py), from the `since`-th on."""
        return [Call(*entry) for entry in self.ask("GET", f"/ledger?since={since}")]

    def go_down(self) -> None:
        """Be away: refuse connections and cut those that are open; counts and rules are kept."""
        self.ask("POST", "/down")

    def come_back(self) -> None:
        """Listen again, on the same port."""
        self.ask("POST", "/up")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send one control request and return its JSON."""
        data = None if body is None else orjson.dumps(body)
        request = Request(
            self.control_url + path, data=data, method=method, headers={"content-type": "application/json"}
        )
        with urlopen(request, timeout=PATIENCE_S) as reply:
            return orjson.loads(reply.read())
