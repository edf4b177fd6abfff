"""One example: a request as callers send it, what the judge replied to each prompt, and the answer."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.domain.model import Model

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/examples"
# These differ each time the request is posted.
_OF_THE_MOMENT = ("runId", "timings", "history", "createdAt", "startedAt", "completedAt", "deadlineAt", "expiresAt")
# The prompts hold a code that only this installation knows.
_OF_THE_INSTALLATION = ("preprocessPrompt", "analyzePrompt", "generateReasonPrompt")


class Exchange(Model):
    """What the judge replied to one prompt; `prompt` is a digest, `usage` as the provider counted it."""

    prompt: str
    reply: str
    usage: dict[str, int]


class RecordedJudge(Model):
    """The judge that was asked, and all that it replied."""

    model: str
    exchanges: list[Exchange]


class Example(Model):
    """A scorer's example; `judge` and `answer` are null until they are recorded."""

    scorer: str
    request: dict[str, Any]
    judge: RecordedJudge | None = None
    answer: dict[str, Any] | None = None

    @property
    def path(self) -> Path:
        """The file of the example."""
        return FOLDER / f"{self.scorer}.json"

    def write(self) -> None:
        """Write the example to its file."""
        text = json.dumps(self.model_dump(by_alias=True, mode="json"), indent=2, ensure_ascii=False)
        self.path.write_text(f"{text}\n", encoding="utf-8")


def read_examples() -> dict[str, Example]:
    """Return all examples by scorer, in the order of their names."""
    read = [Example.model_validate_json(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))]
    return {example.scorer: example for example in read}


def model_of(examples: Iterable[Example]) -> str:
    """Return the model that was asked."""
    return next(example.judge.model for example in examples if example.judge and example.judge.exchanges)


def lasting(run: dict[str, Any]) -> dict[str, Any]:
    """Return of a run what is the same whenever and wherever its request is posted."""
    return {name: value for name, value in run.items() if name not in _OF_THE_MOMENT + _OF_THE_INSTALLATION}
