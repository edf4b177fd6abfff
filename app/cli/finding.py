"""What `assay doctor` finds."""

from enum import Enum
from typing import NamedTuple


class Level(Enum):
    """OK; worth knowing; in the way."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """One line: how it stands, what was looked at, and what is so or what to do."""

    level: Level
    name: str
    detail: str
