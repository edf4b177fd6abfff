"""What the stub does instead of answering well: rules, tried in order, each for some calls.

A rule is a JSON object. Which calls it is for:

- `match`: a string that the prompt (all messages) contains; default: any call
- `when`: {"path.into.the.body": value} that the request must have; value null means "present, whatever it is"
- `times`: how many calls it lasts for, default 1; null: for ever

What it does, in any combination that makes sense:

- `delay_ms`: wait before answering
- `status`, `headers`, `body`: answer this instead (body: any JSON, or a string sent as it is)
- `hang`: never answer; `drop`: "before" closes the connection at once, "mid_body" after half of the body
- `fence`, `think`: wrap the good reply in a code fence; put a reasoning block in front
- `cut`: half of the reply with finish_reason "length"
- `refuse`, `empty`: a refusal; an empty content
- `miscount`: "drop", "duplicate" or "add" an item of the reply's first list
- `reply`: this text is the content
- `logprobs`: {"yes": {"yes": 0.7, "no": 0.3}}: the probabilities in the place of a label, told when asked for
"""

from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class Rule:
    """One scripted behaviour and the calls it is for."""

    match: str | None = None
    when: dict[str, Any] = field(default_factory=dict)
    times: int | None = 1
    delay_ms: float | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    hang: bool = False
    drop: str | None = None
    fence: bool = False
    think: bool = False
    cut: bool = False
    refuse: bool = False
    empty: bool = False
    miscount: str | None = None
    reply: str | None = None
    logprobs: dict[str, dict[str, float]] | None = None

    def fits(self, body: dict[str, Any], prompt: str) -> bool:
        """Return whether this call is one the rule is for."""
        if self.times == 0 or (self.match is not None and self.match not in prompt):
            return False
        return all(
            _at(body, path) == value if value is not None else _has(body, path) for path, value in self.when.items()
        )

    def use(self) -> None:
        """Count one call off."""
        if self.times is not None:
            self.times -= 1


NAMES = {f.name for f in fields(Rule)}
PLAIN = Rule()


class Script:
    """The rules in force."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def add(self, rules: Any) -> None:
        """Append one rule or a list of rules; raises ValueError for names that no rule has."""
        for rule in rules if isinstance(rules, list) else [rules]:
            unknown = set(rule) - NAMES
            if unknown:
                raise ValueError(f"no such rule field: {', '.join(sorted(unknown))}")
            self.rules.append(Rule(**rule))

    def clear(self) -> None:
        """Answer well again."""
        self.rules.clear()

    def choose(self, body: dict[str, Any], prompt: str) -> Rule:
        """Return the first rule that fits, counted off, or the plain behaviour."""
        for rule in self.rules:
            if rule.fits(body, prompt):
                rule.use()
                return rule
        return PLAIN


def _at(body: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(body, dict):
            return None
        body = body.get(key)
    return body


def _has(body: Any, path: str) -> bool:
    *parents, last = path.split(".")
    for key in parents:
        body = body.get(key) if isinstance(body, dict) else None
    return isinstance(body, dict) and last in body
