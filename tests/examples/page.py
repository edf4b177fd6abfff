"""docs/examples.md: all scorers in one table, then each one's request and answer."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.examples.example import ROOT, Example, model_of

PAGE = ROOT / "docs/examples.md"
_INTRODUCTION = """\
# Examples

One request for every scorer, and what the service answers. A test posts each of them to a running service, with the
replies that a real judge gave once ([docs/examples](examples) has them), and the answers have to be these.

The judge is a small model (`JUDGE`), so that anybody can record them again. It is wrong in places: the
examples show the form of an answer, not how good a judge is. Left out are the prompts, what is null or empty, and what
differs each time (`runId`, times). brand-safety is a [scorer of one's own](custom-scorers.md) that comes with the
repository.

```sh
.venv/bin/python -m tests.examples record --base-url http://127.0.0.1:8080/v1 --model MODEL
```

asks any OpenAI-compatible endpoint again, and writes this page.
"""


def page(examples: Iterable[Example]) -> str:
    """Return the whole page as Markdown."""
    examples = list(examples)
    parts = [_INTRODUCTION.replace("JUDGE", model_of(examples)), _table(examples), *map(_section, examples)]
    return "\n".join(parts)


def _table(examples: list[Example]) -> str:
    rows = ["| scorer | score | | judge calls | tokens in, out |", "| --- | --- | --- | --- | --- |"]
    for example in examples:
        run = _answer(example)
        usage = run["usage"]
        link = f"[{example.scorer}](#{example.scorer})"
        tokens = f"{usage['inputTokens']}, {usage['outputTokens']}"
        rows.append(f"| {link} | {_score(run)} | {run['interpretation'] or ''} | {usage['judgeCalls']} | {tokens} |")
    return "\n".join(rows) + "\n"


def _score(run: Mapping[str, Any]) -> str:
    return run["status"] if run["score"] is None else str(run["score"])


def _section(example: Example) -> str:
    request = f"POST /v1/scorers/{example.scorer}/runs\n\n{_json(example.request)}"
    shown = {name: value for name, value in _answer(example).items() if value not in (None, [], {})}
    return f"## {example.scorer}\n\n```http\n{request}\n```\n\n```json\n{_json(shown)}\n```\n"


def _answer(example: Example) -> dict[str, Any]:
    assert example.answer is not None, f"{example.scorer} was not recorded"
    return example.answer


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
