"""Every metric of Assay: names, labels and buckets.

Label values come from fixed sets (route templates, the installation's scorers, configured judges, closed enums), never
from callers.
"""

from typing import Generic, Protocol, Self, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from app import __version__
from app.ports import QueueDepth

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
ATTEMPTS = (1, 2, 3, 4, 5, 10, 20)
SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
CUSTOM = "custom"
BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}
UNKNOWN = float("nan")


class _Labelled(Protocol):
    def labels(self, *labelvalues: str) -> Self: ...


T = TypeVar("T", bound=_Labelled)


class _Bound(Generic[T]):
    """A metric whose children are looked up once per set of labels."""

    def __init__(self, metric: T) -> None:
        self._metric = metric
        self._children: dict[tuple[str, ...], T] = {}

    def of(self, *labels: str) -> T:
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = self._metric.labels(*labels)
        return child


class HttpMetrics:
    """What the API serves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("route", "method", "status")
        self._requests = _Bound(
            Counter("assay_http_requests_total", "HTTP requests answered", labels, registry=registry)
        )
        self._duration = _Bound(
            Histogram(
                "assay_http_request_duration_seconds",
                "From the request's headers to the end of its answer",
                labels,
                buckets=SECONDS,
                registry=registry,
            )
        )
        Info("assay_build", "The running version", registry=registry).info({"version": __version__})

    def request_finished(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request; `route` is a template."""
        labels = (route, method if method in METHODS else OTHER, str(status))
        self._requests.of(*labels).inc()
        self._duration.of(*labels).observe(seconds)


class QueueMetrics:
    """What waits in the queue and who works on it, as it was when last looked at; NaN when it can't be seen."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._depth = _Bound(Gauge("assay_queue_depth", "Runs waiting in the queue", ("priority",), registry=registry))
        self._oldest = Gauge("assay_queue_oldest_seconds", "How long the oldest run has waited", registry=registry)
        self._workers = Gauge("assay_workers_alive", "Workers that are alive", registry=registry)
        self._beat_age = Gauge(
            "assay_worker_heartbeat_age_seconds", "How long ago a worker last showed that it lives", registry=registry
        )
        self._priorities: set[str] = set()

    def seen(self, depth: QueueDepth, workers: int, beat_age_s: float | None) -> None:
        """Take over a fresh look at the queue; `beat_age_s` is None when no worker is alive."""
        for priority, waiting in depth.by_priority.items():
            self._priorities.add(priority)
            self._depth.of(priority).set(waiting)
        self._oldest.set(depth.oldest_s)
        self._workers.set(workers)
        self._beat_age.set(UNKNOWN if beat_age_s is None else beat_age_s)

    def unseen(self) -> None:
        """Say that nothing is known: an old number would look like a healthy queue."""
        for priority in self._priorities:
            self._depth.of(priority).set(UNKNOWN)
        self._oldest.set(UNKNOWN)
        self._workers.set(UNKNOWN)
        self._beat_age.set(UNKNOWN)


class WorkerMetrics:
    """What a worker process tells of itself beside its runs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._last_beat = Gauge(
            "assay_worker_last_beat_timestamp_seconds",
            "When this worker last showed Redis that it lives, Unix time",
            registry=registry,
        )

    def beaten(self) -> None:
        """Note a heartbeat that Redis took."""
        self._last_beat.set_to_current_time()


class PrometheusTelemetry:
    """The Telemetry port over Prometheus; scorers that are not among `scorers` share the label `custom`."""

    def __init__(self, registry: CollectorRegistry, *, scorers: tuple[str, ...]) -> None:
        self._scorers = frozenset(scorers)
        self._add_run_metrics(registry)
        self._add_judge_metrics(registry)
        for scorer in scorers:
            self._scores.of(scorer)

    def _add_run_metrics(self, registry: CollectorRegistry) -> None:
        self._runs = _Bound(Counter("assay_runs_total", "Runs ended", ("scorer", "mode", "status"), registry=registry))
        self._run_duration = _Bound(
            _seconds("assay_run_duration_seconds", "From a run's start to its end", ("scorer", "mode"), registry)
        )
        self._in_flight = _Bound(
            Gauge("assay_runs_in_flight", "Runs being executed", ("scorer", "mode"), registry=registry)
        )
        self._queue_wait = _Bound(
            _seconds("assay_queue_wait_seconds", "From a run's acceptance to its start", ("priority",), registry)
        )
        self._steps = _Bound(
            _seconds("assay_step_duration_seconds", "One step of a run", ("scorer", "step", "source"), registry)
        )
        self._scores = _Bound(
            Histogram("assay_score", "Scores before scaling, 0 to 1", ("scorer",), buckets=SCORES, registry=registry)
        )

        self._attempts = Histogram(
            "assay_run_attempts", "How often a run was begun until it ended", buckets=ATTEMPTS, registry=registry
        )
        self._recoveries = _Bound(
            Counter("assay_recoveries_total", "Runs saved from being lost", ("reason",), registry=registry)
        )

    def _add_judge_metrics(self, registry: CollectorRegistry) -> None:
        call = ("model", "outcome")
        self._calls = _Bound(Counter("assay_judge_calls_total", "Calls of judge models", call, registry=registry))
        self._call_duration = _Bound(
            _seconds("assay_judge_call_duration_seconds", "One call, its retries not included", call, registry)
        )
        self._tokens = _Bound(
            Counter(
                "assay_judge_tokens_total",
                "Tokens as the provider counts them",
                (*call, "direction"),
                registry=registry,
            )
        )
        self._cost = _Bound(
            Counter("assay_judge_cost_usd_total", "Cost by the configured prices", call, registry=registry)
        )
        self._retries = _Bound(
            Counter("assay_judge_retries_total", "Calls tried again", ("model", "cause"), registry=registry)
        )
        self._waits = _Bound(
            _seconds("assay_judge_wait_seconds", "Waits before a call of a judge model", ("model", "cause"), registry)
        )
        self._breakers = _Bound(
            Gauge("assay_judge_breaker_state", "0 closed, 1 half open, 2 open", ("model",), registry=registry)
        )
        self._openings = _Bound(
            Counter("assay_judge_breaker_openings_total", "Times that a breaker opened", ("model",), registry=registry)
        )
        self._fallbacks = _Bound(
            Counter("assay_judge_fallbacks_total", "Calls made of another model", ("model", "to"), registry=registry)
        )
        self._invalid = _Bound(
            Counter(
                "assay_judge_invalid_replies_total",
                "Replies that could not be used",
                ("scorer", "step", "reason"),
                registry=registry,
            )
        )
        self._cache = _Bound(
            Counter("assay_cache_requests_total", "Look-ups in the reply cache", ("result",), registry=registry)
        )

    def _known(self, scorer: str) -> str:
        return scorer if scorer in self._scorers else CUSTOM

    def run_started(self, scorer: str, mode: str) -> None:
        """Note that a run is being executed."""
        self._in_flight.of(self._known(scorer), mode).inc()

    def run_finished(
        self, scorer: str, mode: str, status: str, seconds: float, score: float | None, *, attempts: int
    ) -> None:
        """Note the end of an execution; `score` is the value before scaling, None when there is none."""
        scorer = self._known(scorer)
        self._in_flight.of(scorer, mode).dec()
        self._runs.of(scorer, mode, status).inc()
        self._run_duration.of(scorer, mode).observe(seconds)
        self._attempts.observe(attempts)
        if score is not None:
            self._scores.of(scorer).observe(score)

    def run_left(self, scorer: str, mode: str) -> None:
        """Note that a run's execution ended here without the run: it was given back, taken over or deleted."""
        self._in_flight.of(self._known(scorer), mode).dec()

    def queue_waited(self, priority: str, seconds: float) -> None:
        """Note how long a queued run waited."""
        self._queue_wait.of(priority).observe(seconds)

    def step_finished(self, scorer: str, step: str, source: str, seconds: float) -> None:
        """Note one step and where its answer came from."""
        self._steps.of(self._known(scorer), step, source).observe(seconds)

    def judge_called(
        self, model: str, outcome: str, seconds: float, input_tokens: int, output_tokens: int, cost_usd: float | None
    ) -> None:
        """Note one call of a judge model."""
        self._calls.of(model, outcome).inc()
        self._call_duration.of(model, outcome).observe(seconds)
        self._tokens.of(model, outcome, "input").inc(input_tokens)
        self._tokens.of(model, outcome, "output").inc(output_tokens)
        if cost_usd is not None:
            self._cost.of(model, outcome).inc(cost_usd)

    def judge_retried(self, model: str, cause: str) -> None:
        """Note that a call is tried again."""
        self._retries.of(model, cause).inc()

    def judge_waited(self, model: str, cause: str, seconds: float) -> None:
        """Note how long a call had to wait, and what for."""
        self._waits.of(model, cause).observe(seconds)

    def breaker_changed(self, model: str, state: str) -> None:
        """Note the state of a model's breaker."""
        self._breakers.of(model).set(BREAKER_STATES[state])
        if state == "open":
            self._openings.of(model).inc()

    def judge_fell_back(self, model: str, to: str) -> None:
        """Note that another model was called instead."""
        self._fallbacks.of(model, to).inc()

    def run_recovered(self, reason: str) -> None:
        """Note that a run was saved."""
        self._recoveries.of(reason).inc()

    def reply_invalid(self, scorer: str, step: str, reason: str) -> None:
        """Note a reply that could not be used."""
        self._invalid.of(self._known(scorer), step, reason).inc()

    def cache_used(self, result: str) -> None:
        """Note a look-up in the reply cache."""
        self._cache.of(result).inc()


def _seconds(name: str, documentation: str, labels: tuple[str, ...], registry: CollectorRegistry) -> Histogram:
    return Histogram(name, documentation, labels, buckets=SECONDS, registry=registry)
