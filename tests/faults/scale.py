"""How big the suite's numbers are: `FAULTS_SCALE=full` for all of them, else what fits beside the other tests."""

import os
from typing import TypeVar

T = TypeVar("T")

FULL = os.environ.get("FAULTS_SCALE") == "full"


def scaled(full: T, small: T) -> T:
    """Return the full number or the small one."""
    return full if FULL else small
