"""A prompt, a schema or a formula that changes needs a new scorer version.

The fingerprint of a scorer is a digest of every prompt it sends for some texts, with schemas, and of what comes out.
When it changes on purpose, raise the scorer's `version` and add the line that the test prints to fingerprints.json.
"""

import json
from hashlib import sha256
from itertools import cycle
from pathlib import Path

import pytest

from app.domain.request import Strategy
from app.domain.run import RunStatus
from tests.unit.fakes import Obedient, ScriptedModel
from tests.unit.judge.runs import SCORERS, Bench

CONTEXT = ["Tea was drunk.\nIt rained; it snowed.", "", "はい。"]
KNOWN: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("fingerprints.json").read_text())
TEXTS = [
    {"output": "Tea is best. It rained. They are lazy! Who said so? Nobody did. Go away. I like it. The end."},
    {"output": "「本当？」と彼は言った。\n1. はい。", "input": "なぜ？", "options": {"language": "fr", "scale": 10}},
]


async def fingerprint(scorer_id: str) -> str:
    seen = []
    for strategy in Strategy:
        for text in TEXTS:
            turn = cycle(range(7))
            bench = Bench(ScriptedModel(Obedient(lambda _, labels, turn=turn: labels[-1 - next(turn) % len(labels)])))
            request = {**text, "options": {**text.get("options", {}), "strategy": strategy.value}}
            if "context" in SCORERS[scorer_id].needs:
                request["context"] = CONTEXT
            run = await bench.score(scorer=scorer_id, **request)
            assert run.status in {RunStatus.COMPLETED, RunStatus.NOT_SCORABLE}
            seen.append([[prompt.system, prompt.user, prompt.schema] for prompt in bench.model.prompts])
            seen.append(
                [run.score, run.interpretation, run.preprocess_step_result, run.analyze_step_result, run.reason]
            )
    return sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.anyio
@pytest.mark.parametrize("scorer_id", SCORERS)
async def test_nothing_changed_under_an_old_version(scorer_id: str) -> None:
    version = SCORERS[scorer_id].version
    now = await fingerprint(scorer_id)
    assert KNOWN[scorer_id].get(version) == now, f'raise the version and note {{"{scorer_id}": {{"...": "{now}"}}}}'


def test_versions_have_fingerprints_of_their_own() -> None:
    for versions in KNOWN.values():
        assert len(set(versions.values())) == len(versions)
