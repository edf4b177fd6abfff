"""A run that kills its worker is tried three times at most; those beside it complete."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.faults.callers import Callers, Posted, new_mark, text_of, until
from tests.faults.ledger import Row
from tests.faults.poisoned import EXIT_STATUS, POISON
from tests.faults.servers import Server
from tests.integration.service import Service

Record = Callable[[Row], Row]
INNOCENT = 20
TRIES = 3
LOOK_S = 0.1
# Three leases of 15 s and the looks for them.
PATIENCE_S = 110.0


@contextmanager
def kept_running(service: Service, deaths: list[int]) -> Iterator[None]:
    """Start workers again that died, as `assay up` does, and note their exit statuses."""
    over = Event()

    def keep() -> None:
        while not over.wait(LOOK_S):
            for number, worker in enumerate(service.workers):
                if not worker.alive:
                    deaths.append(worker.stop())
                    service.workers[number] = worker.again()

    keeper = Thread(target=keep)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()


@pytest.mark.timeout(240)
def test_a_poison_run_is_given_up_and_its_neighbours_complete(server: Server, tmp_path: Path, record: Record) -> None:
    deaths: list[int] = []
    with Service(server.url, tmp_path, worker_module="tests.faults.poisoned", delay_ms=300) as service:
        callers = Callers(service.stub, service.clients)
        innocent = callers.post(INNOCENT)
        mark = new_mark()
        poison = service.score(output=f"{text_of(mark)} It is full of {POISON}.", mode="queued").json()["runId"]
        with kept_running(service, deaths):
            since = time.time()
            row = record(
                callers.judge(
                    "poison run beside 20",
                    server.kind,
                    innocent,
                    since=since,
                    patience_s=PATIENCE_S,
                    paid_again=3 * INNOCENT,
                )
            )
            (run,) = callers.ends([Posted(poison, mark)], PATIENCE_S)
            assert (row.recovered, row.lost, row.duplicated) == (INNOCENT, 0, 0)
            assert deaths == [EXIT_STATUS] * TRIES
            assert (run["status"], run["error"]["code"], run["attempts"]) == ("failed", "internal", TRIES)
            assert [attempt["outcome"] for attempt in run["history"]] == ["lost"] * TRIES
            assert callers.ends_in_events(poison) == 1
            # It is tried again when somebody asks for it, with as many tries as before.
            again = service.client.post(f"/v1/runs/{poison}/retry")
            assert (again.status_code, again.json()["status"]) == (202, "queued")
            until(lambda: len(deaths) > TRIES, "the run is tried again", PATIENCE_S)
