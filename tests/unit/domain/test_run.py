import pytest

from app.domain.run import Attempt, AttemptOutcome, Run, RunStatus, Usage
from tests.unit.fakes import NOW
from tests.unit.judge.runs import new_run


@pytest.mark.parametrize("status", list(RunStatus))
def test_only_queued_and_running_move_on(status: RunStatus) -> None:
    assert status.ended is (status.value not in {"queued", "running"})


def test_a_run_is_camel_case_outside_and_comes_back_the_same() -> None:
    run = new_run(usage=Usage(judge_calls=2))
    document = run.model_dump_json()
    assert '"judgeCalls":2' in document
    assert type(run).model_validate_json(document) == run


def test_from_attempts_on_a_stored_run_holds_nothing_that_a_caller_or_a_judge_wrote() -> None:
    """The store's scripts find these fields by their names, behind all texts."""
    fields = list(Run.model_fields)
    assert fields[fields.index("attempts") :] == [
        "attempts",
        "history",
        "created_at",
        "started_at",
        "completed_at",
        "deadline_at",
        "expires_at",
    ]
    assert list(Attempt.model_fields) == ["number", "started_at", "ended_at", "outcome"]


@pytest.mark.parametrize("status", [status for status in RunStatus if status.ended])
def test_the_open_attempt_ends_as_the_run_does(status: RunStatus) -> None:
    lost = Attempt(number=1, started_at=NOW, ended_at=NOW, outcome=AttemptOutcome.LOST)
    run = new_run(history=[lost, Attempt(number=2, started_at=NOW)]).model_copy(update={"status": status})
    assert run.with_attempt_ended(NOW).history == [
        lost,
        Attempt(number=2, started_at=NOW, ended_at=NOW, outcome=AttemptOutcome(status.value)),
    ]


@pytest.mark.parametrize(
    "history", [[], [Attempt(number=1, started_at=NOW, ended_at=NOW, outcome=AttemptOutcome.LOST)]]
)
def test_an_attempt_that_has_ended_stays_as_it_is(history: list[Attempt]) -> None:
    run = new_run(history=history).model_copy(update={"status": RunStatus.FAILED})
    assert run.with_attempt_ended(NOW) == run
