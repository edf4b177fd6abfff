"""One process each: how long it may take when its parent is gone."""

import pytest

import app.main
import worker.__main__
from app.cli import serve as commands
from app.main import GRACE_BEYOND_INLINE_WAIT_S
from app.settings import Settings
from worker.worker import GIVE_BACK_S

SETTINGS = Settings(_env_file=None, inline_wait_s=7, worker_grace_s=20)  # type: ignore[call-arg]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds after which a process would be ended hard."""
    limits: list[float] = []
    monkeypatch.setattr(commands, "load_settings", lambda: SETTINGS)
    monkeypatch.setattr(commands, "follow_stdin", lambda grace_s: limits.append(grace_s))  # noqa: PLW0108 - named
    monkeypatch.setattr(app.main, "serve", lambda *_: None)
    monkeypatch.setattr(worker.__main__, "main", lambda *_: None)
    return limits


def test_an_api_without_a_parent_has_time_to_answer_and_to_close(limits: list[float]) -> None:
    commands.serve(follow=True)
    assert limits[0] > SETTINGS.inline_wait_s + GRACE_BEYOND_INLINE_WAIT_S


def test_a_worker_without_a_parent_has_time_to_give_its_runs_back(limits: list[float]) -> None:
    commands.worker(follow=True)
    assert limits[0] > SETTINGS.worker_grace_s + GIVE_BACK_S


def test_a_worker_works_with_the_settings_that_were_read(limits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Settings] = []
    monkeypatch.setattr(worker.__main__, "main", given.append)
    commands.worker()
    assert given == [SETTINGS]


def test_nobody_is_followed_unasked(limits: list[float]) -> None:
    commands.serve()
    commands.worker()
    assert limits == []
