"""Metrics: names, labels from fixed sets, and what a scrape shows."""

import math
import re
import time
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry

from app.domain.errors import StoreUnavailable
from app.domain.request import Priority
from app.observe.exposition import exposition, make_registry
from app.observe.metrics import SECONDS, HttpMetrics, PrometheusTelemetry, QueueMetrics, WorkerMetrics
from app.observe.queue_watch import look_at_queue
from app.ports import QueueDepth, RunKey, Telemetry


@pytest.fixture
def registry() -> CollectorRegistry:
    return make_registry()


@pytest.fixture
def telemetry(registry: CollectorRegistry) -> Telemetry:
    return PrometheusTelemetry(registry, scorers=("bias", "toxicity"))


def use_everything(telemetry: Telemetry, scorer: str = "bias") -> None:
    telemetry.run_started(scorer, "inline")
    telemetry.run_finished(scorer, "inline", "completed", 1.5, 0.25, attempts=1)
    telemetry.queue_waited("normal", 0.2)
    telemetry.step_finished(scorer, "analyze", "llm", 0.7)
    telemetry.judge_called("stub/judge", "ok", 0.6, 120, 30, 0.002)
    telemetry.judge_called("stub/judge", "timeout", 60.0, 0, 0, None)
    telemetry.judge_retried("stub/judge", "429")
    telemetry.reply_invalid(scorer, "analyze", "wrong")
    telemetry.cache_used("hit")


def test_every_event_is_counted(registry: CollectorRegistry, telemetry: Telemetry) -> None:
    use_everything(telemetry)
    run = {"scorer": "bias", "mode": "inline"}
    call = {"model": "stub/judge", "outcome": "ok"}
    expected = [
        ("assay_runs_total", run | {"status": "completed"}, 1),
        ("assay_run_duration_seconds_sum", run, 1.5),
        ("assay_runs_in_flight", run, 0),
        ("assay_queue_wait_seconds_count", {"priority": "normal"}, 1),
        ("assay_step_duration_seconds_sum", {"scorer": "bias", "step": "analyze", "source": "llm"}, 0.7),
        ("assay_judge_calls_total", call, 1),
        ("assay_judge_calls_total", call | {"outcome": "timeout"}, 1),
        ("assay_judge_call_duration_seconds_sum", call, 0.6),
        ("assay_judge_tokens_total", call | {"direction": "input"}, 120),
        ("assay_judge_tokens_total", call | {"direction": "output"}, 30),
        ("assay_judge_cost_usd_total", call, 0.002),
        ("assay_judge_retries_total", {"model": "stub/judge", "cause": "429"}, 1),
        ("assay_judge_invalid_replies_total", {"scorer": "bias", "step": "analyze", "reason": "wrong"}, 1),
        ("assay_cache_requests_total", {"result": "hit"}, 1),
        ("assay_score_bucket", {"scorer": "bias", "le": "0.2"}, 0),
        ("assay_score_bucket", {"scorer": "bias", "le": "0.3"}, 1),
    ]
    for name, labels, value in expected:
        assert registry.get_sample_value(name, labels) == value, name


def test_a_run_without_a_score_adds_none(registry: CollectorRegistry, telemetry: Telemetry) -> None:
    telemetry.run_started("bias", "queued")
    assert registry.get_sample_value("assay_runs_in_flight", {"scorer": "bias", "mode": "queued"}) == 1
    telemetry.run_finished("bias", "queued", "failed", 1.0, None, attempts=3)
    assert registry.get_sample_value("assay_score_count", {"scorer": "bias"}) == 0


def test_a_thousand_unknown_names_add_one_series(registry: CollectorRegistry, telemetry: Telemetry) -> None:
    http = HttpMetrics(registry)
    use_everything(telemetry, "surprise")
    http.request_finished("unmatched", "BREW", 404, 0.001)
    before = exposition(registry, "")[0].count(b"\n")
    for n in range(1_000):
        use_everything(telemetry, f"surprise-{n}")
        http.request_finished("unmatched", f"BREW{n}", 404, 0.001)
    assert exposition(registry, "")[0].count(b"\n") == before
    assert registry.get_sample_value("assay_score_count", {"scorer": "custom"}) == 1_001


def test_names_are_ours_and_end_in_a_unit(registry: CollectorRegistry, telemetry: Telemetry) -> None:
    HttpMetrics(registry).request_finished("/v1/runs", "GET", 200, 0.02)
    WorkerMetrics(registry).beaten()
    QueueMetrics(registry).seen(QueueDepth({Priority.NORMAL: 1}, 2.0), 1, 0.5)
    use_everything(telemetry)
    families = set(re.findall(r"^# TYPE (\S+) (\S+)$", exposition(registry, "")[0].decode(), re.MULTILINE))
    assert all(name.startswith("assay_") for name, _ in families)
    assert all(name.endswith("_total") for name, kind in families if kind == "counter")
    assert not any(name.endswith("_created") for name, _ in families)
    assert {"assay_http_requests_total", "assay_http_request_duration_seconds", "assay_build_info"} <= {
        name for name, _ in families
    }


def test_buckets_fit_5_ms_to_120_s() -> None:
    assert (SECONDS[0], SECONDS[-1]) == (0.005, 120.0)
    assert list(SECONDS) == sorted(SECONDS)


def test_openmetrics_for_those_who_ask(registry: CollectorRegistry, telemetry: Telemetry) -> None:
    text, content_type = exposition(registry, "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


class Queue:
    """A queue that answers, or does not."""

    def __init__(self, *, away: bool = False, alive: int = 2) -> None:
        self.away = away
        self.alive = alive

    async def depth(self) -> QueueDepth:
        if self.away:
            raise StoreUnavailable
        return QueueDepth({Priority.HIGH: 0, Priority.NORMAL: 3, Priority.BULK: 0}, 4.5)

    async def workers(self) -> int:
        return self.alive

    async def last_beat_s(self) -> float | None:
        return 1.5 if self.alive else None

    async def missing(self, keys: Sequence[RunKey]) -> list[RunKey]:
        return []

    async def enqueue(
        self, key: RunKey, priority: Priority, timeout_s: float, *, caller: str = "", if_room: bool = False
    ) -> None: ...

    async def check_room(self) -> None: ...

    async def remove(self, key: RunKey) -> None: ...


@pytest.mark.anyio
async def test_a_queue_that_is_away_shows_no_old_numbers(registry: CollectorRegistry) -> None:
    metrics, queue = QueueMetrics(registry), Queue()
    await look_at_queue(queue, metrics)
    normal = {"priority": "normal"}
    assert registry.get_sample_value("assay_queue_depth", normal) == 3
    assert registry.get_sample_value("assay_queue_oldest_seconds") == 4.5
    assert registry.get_sample_value("assay_workers_alive") == 2
    assert registry.get_sample_value("assay_worker_heartbeat_age_seconds") == 1.5
    queue.away = True
    await look_at_queue(queue, metrics)
    for name, labels in (
        ("assay_queue_depth", normal),
        ("assay_queue_oldest_seconds", {}),
        ("assay_workers_alive", {}),
        ("assay_worker_heartbeat_age_seconds", {}),
    ):
        assert math.isnan(registry.get_sample_value(name, labels) or 0.0)


@pytest.mark.anyio
async def test_without_a_worker_there_is_no_heartbeat(registry: CollectorRegistry) -> None:
    await look_at_queue(Queue(alive=0), QueueMetrics(registry))
    assert registry.get_sample_value("assay_workers_alive") == 0
    assert math.isnan(registry.get_sample_value("assay_worker_heartbeat_age_seconds") or 0.0)


def test_a_worker_tells_when_it_last_beat(registry: CollectorRegistry) -> None:
    metrics = WorkerMetrics(registry)
    before = time.time()
    metrics.beaten()
    assert before <= (registry.get_sample_value("assay_worker_last_beat_timestamp_seconds") or 0) <= time.time()
