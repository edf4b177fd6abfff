"""Two APIs that are restarted in turn under load: clients that go to the other one when refused lose no request."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.runs.test_scores import unique
from tests.integration.service import Service

STEP_MS = 400
SCORE = "/v1/scorers/bias/runs"


class Load:
    """Clients with keep-alive connections to every API; a refused connect sends the request to the next one."""

    def __init__(self, service: Service) -> None:
        self._urls = [f"http://127.0.0.1:{port}" for port in service.ports]
        self._over = threading.Event()
        self.statuses: list[int] = []
        self.refused = 0

    def keep_asking(self, first: int, method: str, path: str, body: Callable[[], Any]) -> None:
        """Send requests one after the other until the load is over; raises what fails."""
        urls = itertools.islice(itertools.cycle(self._urls), first, None)
        with httpx.Client(timeout=30, trust_env=False) as client:
            url = next(urls)
            while not self._over.is_set():
                try:
                    answer = client.request(method, url + path, json=body())
                except httpx.ConnectError:
                    self.refused += 1
                    url = next(urls)
                    continue
                self.statuses.append(answer.status_code)

    def end(self) -> None:
        self._over.set()


def inline() -> dict[str, str]:
    return {"output": unique()}


def queued() -> dict[str, str]:
    return {"output": unique(), "mode": "queued"}


def test_a_rolling_restart_loses_no_request(valkey_url: str, tmp_path: Path) -> None:
    with Service(valkey_url, tmp_path, apis=2, workers=0, delay_ms=STEP_MS) as service, ThreadPoolExecutor(16) as pool:
        load = Load(service)
        asking = [
            pool.submit(load.keep_asking, number, method, path, body)
            for number in range(4)
            for method, path, body in (
                ("POST", SCORE, inline),
                ("POST", SCORE, queued),
                ("GET", "/v1/runs", lambda: None),
                ("GET", "/v1/scorers", lambda: None),
            )
        ]
        try:
            for number in (0, 1):
                calls = service.judge_calls()
                while service.judge_calls() < calls + 8:
                    pass
                assert service.apis[number].stop() == 0
                service.apis[number] = service.start_api(number)
                service.wait_until_ready()
        finally:
            load.end()
        for one in asking:
            one.result(30)
        assert load.refused
        assert set(load.statuses) == {200, 202}
        assert "Cancel" not in service.said()


@pytest.mark.parametrize("moment", ["idle", "busy"])
def test_a_stopping_api_answers_open_connections_once_more(valkey_url: str, tmp_path: Path, moment: str) -> None:
    with Service(valkey_url, tmp_path, workers=0, delay_ms=STEP_MS) as service, ThreadPoolExecutor(1) as pool:
        service.client.get("/livez").raise_for_status()
        with httpx.Client(base_url=str(service.client.base_url), timeout=30, trust_env=False) as other:
            other.get("/livez").raise_for_status()
            running = pool.submit(service.score, output=unique()) if moment == "busy" else None
            while running and not service.judge_calls():
                pass
            service.api.child.terminate()
            while not is_refused(service):
                pass
            answer = other.get("/readyz")
            assert answer.status_code == 503
            assert answer.headers["connection"] == "close"
            assert "shutting down" in answer.text
            with pytest.raises(httpx.ConnectError):
                other.get("/livez")
            if running:
                finished = running.result(30)
                assert finished.status_code == 200
                assert finished.headers["connection"] == "close"
        assert service.api.child.wait(20) == 0


def is_refused(service: Service) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{service.port}/livez", trust_env=False)
    except httpx.ConnectError:
        return True
    return False
