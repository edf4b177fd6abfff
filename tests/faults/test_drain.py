"""Processes that are asked to stop: what runs is finished or given back, and no caller notices."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread

import httpx
import pytest

from tests.faults.callers import Callers, Posted, assert_whole, new_mark, text_of
from tests.faults.ledger import Row
from tests.faults.servers import Server
from tests.integration.service import Process, Service

Record = Callable[[Row], Row]
RUNS = 30
CALLERS = 6
PACE_S = 0.1


def test_a_stopping_worker_finishes_within_its_grace(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, delay_ms=700, worker_grace_s="20", worker_concurrency="15") as service:
        callers = Callers(service.stub, service.clients)
        posted = callers.post(RUNS)
        callers.until_calls("bias_preprocess", 15)
        since = time.time()
        assert service.workers[0].stop() == 0
        statuses = Counter(callers.get(one.run_id)["status"] for one in posted)
        assert statuses == {"completed": 15, "queued": RUNS - 15}
        service.workers[0] = service.start_worker()
        row = record(callers.judge("SIGTERM of a worker, grace enough", server.kind, posted, since=since))
        assert_whole(row)
        assert set(callers.asked().values()) == {RUNS}
        assert {run["attempts"] for run in callers.ends(posted)} == {1}


def test_a_stopping_worker_gives_the_rest_back_at_once(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, worker_grace_s="1") as service:
        callers = Callers(service.stub, service.clients)
        service.stub.script({"when": {"response_format.json_schema.name": "bias_analyze"}, "hang": True, "times": RUNS})
        posted = callers.post(RUNS)
        callers.until_calls("bias_analyze", RUNS)
        since = time.time()
        assert service.workers[0].stop() == 0
        assert {callers.get(one.run_id)["status"] for one in posted} == {"queued"}
        service.workers[0] = service.start_worker()
        row = record(callers.judge("SIGTERM of a worker, the rest given back", server.kind, posted, since=since))
        assert_whole(row)
        assert callers.asked() == {"bias_preprocess": RUNS, "bias_analyze": 2 * RUNS, "bias_reason": RUNS}
        runs = callers.ends(posted)
        assert {tuple(attempt["outcome"] for attempt in run["history"]) for run in runs} == {
            ("given_back", "completed")
        }


def test_a_stopping_api_answers_what_it_has(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, workers=0, delay_ms=500) as service:
        callers = Callers(service.stub, service.clients)
        answers: list[httpx.Response] = []

        def post() -> None:
            with httpx.Client(base_url=str(service.client.base_url), timeout=60, trust_env=False) as client:
                answers.append(client.post("/v1/scorers/bias/runs", json={"output": text_of(new_mark())}))

        threads = [Thread(target=post) for _ in range(RUNS)]
        for thread in threads:
            thread.start()
        callers.until_calls("bias_preprocess", RUNS)
        assert service.api.stop() == 0
        for thread in threads:
            thread.join()
        record(Row("SIGTERM of the API during inline runs", server.kind, RUNS, len(answers), RUNS - len(answers), 0))
        assert [answer.status_code for answer in answers] == [200] * RUNS
        assert {answer.json()["status"] for answer in answers} == {"completed"}


class Steady:
    """Callers who score inline, queue, poll and read all the time; a refused connect is tried at the other API."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.urls = [str(client.base_url) for client in service.clients]
        self.posted: list[Posted] = []
        self.failed: list[str] = []
        self.counts: Counter[str] = Counter()
        self._lock = Lock()
        self._over = Event()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        threads = [Thread(target=self._call_on, args=(number,)) for number in range(CALLERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _call_on(self, number: int) -> None:
        clients = [httpx.Client(base_url=url, timeout=60, trust_env=False) for url in self.urls]
        turn = number
        while not self._over.wait(PACE_S):
            turn += 1
            mark = new_mark()
            mode = "queued" if turn % 2 else "inline"
            body = {"output": text_of(mark), "mode": mode}
            answer = self._send(clients, turn, "POST", "/v1/scorers/bias/runs", json=body)
            if answer is not None:
                with self._lock:
                    self.posted.append(Posted(answer.json()["runId"], mark))
                self._send(clients, turn + 1, "GET", f"/v1/runs/{answer.json()['runId']}?wait=2")
        for client in clients:
            client.close()

    def _send(
        self, clients: list[httpx.Client], turn: int, method: str, path: str, **options: object
    ) -> httpx.Response | None:
        for attempt in range(20):
            try:
                answer = clients[(turn + attempt) % len(clients)].request(method, path, **options)  # type: ignore[arg-type]
            except httpx.ConnectError:
                self._count("refused connects")
                time.sleep(PACE_S)
                continue
            except httpx.TransportError as error:
                self._fail(f"{method} {path}: {error!r}")
                return None
            self._count("requests")
            if answer.is_success:
                return answer
            self._fail(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return None
        self._fail(f"{method} {path}: nobody listens")
        return None

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def _fail(self, what: str) -> None:
        with self._lock:
            self.failed.append(what)


@pytest.mark.both_servers
def test_a_rolling_restart_fails_no_request(server: Server, tmp_path: Path, record: Record) -> None:
    with Service(server.url, tmp_path, apis=2, workers=2, delay_ms=50, worker_grace_s="5") as service:
        callers = Callers(service.stub, service.clients)
        steady = Steady(service)

        def restart(group: list[Process], number: int) -> None:
            assert group[number].stop() == 0
            group[number] = group[number].again()
            service.wait_until_ready()

        with steady.going_on():
            time.sleep(1)
            for number in range(2):
                restart(service.workers, number)
                restart(service.apis, number)
            time.sleep(1)
        since = time.time()
        refused = steady.counts["refused connects"]
        note = f"{steady.counts['requests']} requests, {len(steady.failed)} failed, {refused} refused connects"
        fault = "rolling restart of 2 APIs, 2 workers"
        row = record(callers.judge(fault, server.kind, steady.posted, since=since, note=note))
        assert steady.failed == []
        assert_whole(row)
