"""Servers to break, and the table that the suite prints at its end.

`FAULTS_SCALE=full` (what `make faults` sets) takes the big numbers and both servers for every fault; otherwise the
numbers are smaller, and only tests marked `both_servers` run against Redis too.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.ledger import Row, as_property, table, write
from tests.faults.scale import FULL
from tests.faults.servers import KINDS, Server, binary

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-table", type=Path, help="write the table of faults there, as JSON or (.md) Markdown")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what lies here, and leave Redis out of the small suite where Valkey says it all."""
    left_out = []
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.faults)
        spec = getattr(item, "callspec", None)
        kind = spec.params.get("server") if spec else None
        if kind == "redis" and not FULL and item.get_closest_marker("both_servers") is None:
            left_out.append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server of this test's own, on a TCP port."""
    kind = request.param
    if binary(kind) is None:
        pytest.skip("redis-server is not installed: apt-get install redis-server, to test with Redis too")
    with Server(kind, tmp_path / "server") as server:
        yield server


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[Row], Row]:
    """Put a row into the table, whatever the test finds wrong afterwards."""

    def add(row: Row) -> Row:
        request.node.user_properties.append(as_property(row))
        return row

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    ]
    rows = [Row(**value) for report in reports for name, value in report.user_properties if name == "fault"]
    if not rows:
        return
    terminalreporter.section("faults")
    terminalreporter.write_line(table(rows))
    path = config.getoption("--faults-table", default=None)
    if path is not None:
        write(path, rows)
