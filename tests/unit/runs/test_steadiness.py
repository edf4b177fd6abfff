"""Who was away, or frozen, does not judge by leases for a while."""

import pytest

from app.runs.steadiness import Steadiness

LEASE_S, GAP_S = 15.0, 10.0


class Clocks:
    """A monotonic clock and the wall's."""

    def __init__(self) -> None:
        self.monotonic, self.wall = 100.0, 1_000_000.0

    def pass_by(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def steadiness(clocks: Clocks) -> Steadiness:
    return Steadiness(LEASE_S, GAP_S, clocks=(lambda: clocks.monotonic, lambda: clocks.wall))


def see_for(steadiness: Steadiness, clocks: Clocks, seconds: float) -> None:
    """Have Redis answer every five seconds for so long."""
    steadiness.seen()
    for _ in range(round(seconds / 5)):
        clocks.pass_by(5)
        steadiness.seen()


def test_nobody_is_steady_before_it_has_seen_redis_for_a_lease(steadiness: Steadiness, clocks: Clocks) -> None:
    assert not steadiness.is_steady
    see_for(steadiness, clocks, 10)
    assert not steadiness.is_steady
    see_for(steadiness, clocks, 5)
    assert steadiness.is_steady


def test_an_outage_costs_a_lease(steadiness: Steadiness, clocks: Clocks) -> None:
    see_for(steadiness, clocks, 60)
    steadiness.lost()
    assert not steadiness.is_steady
    see_for(steadiness, clocks, 10)
    assert not steadiness.is_steady
    see_for(steadiness, clocks, 5)
    assert steadiness.is_steady


@pytest.mark.parametrize(("monotonic", "wall"), [(11.0, 11.0), (11.0, 0.0), (0.0, 11.0), (0.0, -3600.0)])
def test_so_does_a_gap_of_its_own_by_either_clock(
    steadiness: Steadiness, clocks: Clocks, monotonic: float, wall: float
) -> None:
    see_for(steadiness, clocks, 60)
    clocks.monotonic += monotonic
    clocks.wall += wall
    # Before anybody looks at Redis again, and after.
    assert not steadiness.is_steady
    see_for(steadiness, clocks, 10)
    assert not steadiness.is_steady
    see_for(steadiness, clocks, 5)
    assert steadiness.is_steady
