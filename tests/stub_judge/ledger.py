"""Every call of a stub in short: who asked what, when, and how it went."""

import re
import time
from typing import Any

MARK = re.compile(r"mark-[0-9a-f]{8,32}")


class Entry:
    """One call: `mark` is the first `mark-<hex>` of its prompt, `step` the name of its reply's schema.

    `outcome` is the status that was sent, "dropped", "gone" (the caller left first) or None while it waits.
    """

    __slots__ = ("began", "ended", "mark", "outcome", "step")

    def __init__(self, mark: str, step: str) -> None:
        self.began = time.time()
        self.ended: float | None = None
        self.mark = mark
        self.step = step
        self.outcome: int | str | None = None

    def end(self, outcome: int | str) -> None:
        """Note how it went, once."""
        if self.outcome is None:
            self.outcome = outcome
            self.ended = time.time()

    def as_json(self) -> list[Any]:
        """Return began and ended (Unix seconds), mark, step and outcome."""
        return [self.began, self.ended, self.mark, self.step, self.outcome]


class Ledger:
    """All calls since the start or the last reset."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def begin(self, body: Any, prompt: str) -> Entry:
        """Add a call."""
        found = MARK.search(prompt)
        schema = (body.get("response_format") or {}).get("json_schema") or {} if isinstance(body, dict) else {}
        entry = Entry(found[0] if found else "", str(schema.get("name", "")))
        self.entries.append(entry)
        return entry

    def as_json(self, since: int) -> list[list[Any]]:
        """Return the calls from the `since`-th on."""
        return [entry.as_json() for entry in self.entries[since:]]
