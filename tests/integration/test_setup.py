"""scripts/setup says in one line what is missing, and takes nothing away that it did not make."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    return tmp_path


def setup(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts" / "setup", "up"],
        check=False,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_environment_of_somebody_else_is_left_alone(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "mine").touch()
    done = setup(checkout)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [".venv is there, but was not made by scripts/setup; move it away"]
    assert (checkout / ".venv" / "mine").exists()


def test_no_python_is_one_line(checkout: Path) -> None:
    done = setup(checkout, ASSAY_PYTHON="/nonexistent/python3")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Python 3.11" in done.stderr


def test_python_without_venv_is_told(checkout: Path) -> None:
    python = checkout / "python3"
    python.write_text('#!/bin/sh\n[ "$1 $2" = "-m venv" ] && exit 1\nexec python3 "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    done = setup(checkout, ASSAY_PYTHON=str(python))
    assert done.returncode == 1
    assert "python3-venv" in done.stderr
