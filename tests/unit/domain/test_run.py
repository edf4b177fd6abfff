import pytest

from app.domain.run import RunStatus, Usage
from tests.unit.judge.runs import new_run


@pytest.mark.parametrize("status", list(RunStatus))
def test_only_queued_and_running_move_on(status: RunStatus) -> None:
    assert status.ended is (status.value not in {"queued", "running"})


def test_a_run_is_camel_case_outside_and_comes_back_the_same() -> None:
    run = new_run(usage=Usage(judge_calls=2))
    document = run.model_dump_json()
    assert '"judgeCalls":2' in document
    assert type(run).model_validate_json(document) == run
