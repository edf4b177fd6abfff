"""A prompt, a schema or a formula that changes needs a new scorer version.

The fingerprint of a scorer is a digest of every prompt it sends for some texts, with schemas, and of what comes out.
When it changes on purpose, raise the scorer's `version` and add the line that the test prints to fingerprints.json.
"""

import json
from hashlib import sha256
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from app.computed.scorer import ComputedScorer, Inputs
from app.domain.request import Strategy
from app.domain.run import RunStatus
from app.judge.scorer import Measure, Scorer
from app.scorers import load_scorers
from tests.unit.fakes import Obedient, ScriptedModel, telling
from tests.unit.judge.runs import SCORERS, Bench

CONTEXT = ["Tea was drunk.\nIt rained; it snowed.", "", "はい。"]
INPUTS: dict[str, tuple[str, Any]] = {
    "context": ("context", CONTEXT),
    "groundTruth": ("ground_truth", "It rained all day. Tea was drunk; coffee was not."),
    "metadata.noisyInput": ("noisy_input", "Waht was drnuk? My cat says hi."),
}
CRITERIA = [
    {"id": "short", "description": "It is short."},
    {"id": "tea", "description": "It names\na drink.", "required": True, "weight": 2.5},
]
KNOWN: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("fingerprints.json").read_text())
TEXTS = [
    {"output": "Tea is best. It rained. They are lazy! Who said so? Nobody did. Go away. I like it. The end."},
    {"output": "「本当？」と彼は言った。\n1. はい。", "input": "なぜ？", "options": {"language": "fr", "scale": 10}},
]
CALL = {"name": "look_up", "arguments": '{"title": 7}'}
CONVERSATION = [
    {"role": "user", "content": "Is it there?\nLook it up."},
    {"role": "assistant", "tool_calls": [{"function": CALL}, {"function": {"name": "burn", "arguments": "?"}}]},
    {"role": "tool", "content": [{"type": "tool-result", "result": {"found": True}}]},
    {"role": "assistant", "content": "Yes.", "tool_calls": [{"function": CALL}]},
]
TOOLS = [
    {"name": "look_up", "description": "Finds a book.", "parameters": {"properties": {"title": {"type": "string"}}}},
    {"name": "lend"},
]
OWN: dict[str, dict[str, Any]] = {
    "tool-call-accuracy": {"output": CONVERSATION, "options": {"tools": TOOLS}},
    "rubric": {"options": {"criteria": CRITERIA}},
}
"""What scorers get beside the texts, or in their place, that need something of another kind."""


SHARES = {"no": {"no": 0.75, "yes": 0.25}, "none": {"none": 0.75, "yes": 0.125, "mockery": 0.125}}


async def fingerprint(scorer_id: str) -> str:
    seen = []
    for strategy, more in product(Strategy, options_of(SCORERS[scorer_id])):
        for text in TEXTS:
            turn = cycle(range(7))
            good = Obedient(lambda _, labels, turn=turn: labels[-1 - next(turn) % len(labels)])
            bench = Bench(ScriptedModel(telling(good, SHARES)))
            own = OWN.get(scorer_id, {})
            chosen = {**text.get("options", {}), **own.get("options", {})}
            request = {**text, **own, "options": {**chosen, "strategy": strategy.value, **more}}
            needs = SCORERS[scorer_id].needs
            request |= {name: given for need, (name, given) in INPUTS.items() if need in needs}
            run = await bench.score(scorer=scorer_id, **request)
            assert run.status in {RunStatus.COMPLETED, RunStatus.NOT_SCORABLE}
            seen.append([[prompt.system, prompt.user, prompt.schema] for prompt in bench.model.prompts])
            seen.append(
                [run.score, run.interpretation, run.preprocess_step_result, run.analyze_step_result, run.reason]
            )
    return sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16]


def options_of(scorer: Scorer) -> list[dict[str, Any]]:
    """The options by which the scorer's prompts or its formula differ."""
    examples = [{"examples": chosen} for chosen in scorer.example_sets[1:]]
    return [{}, *examples, *({"scoring": chosen} for chosen in scorer.scorings[1:])]


@pytest.mark.anyio
@pytest.mark.parametrize("scorer_id", SCORERS)
async def test_nothing_changed_under_an_old_version(scorer_id: str) -> None:
    refuse_change(SCORERS[scorer_id], await fingerprint(scorer_id))


COMPUTED = {name: scorer for name, scorer in load_scorers().items() if isinstance(scorer, ComputedScorer)}
COMPUTED_TEXTS = [
    Inputs("The ferries leave at nine. I love it!", "When does the ferry leave?", "A ferry left at ten. I hate it."),
    Inputs("会议在图书馆举行。", "会议在哪里举行？", "会议三月五日在北京大学举行。"),
    Inputs('{"회의": "도서관에서"}', "회의가 어디서 있습니까? L'eau?", "도서관은 회의가 아닙니다."),
]
COMPUTED_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "checks": [
        {"includes": ["LEAVE", "会议"], "excludes": ["I"], "matches": [r"\pL{4}"], "ignoreCase": True},
        {"equals": "x", "jsonSchema": {"type": "object", "additionalProperties": {"pattern": "^x"}}},
    ],
    "keyword-coverage": [{}, {"keywords": ["Ferry", "回", "回议", "议", "회의"]}],
    "textual-difference": [{}, {"ignoreCase": True, "against": "input"}],
    "tone": [{}, {"textLanguage": "en"}],
}


@pytest.mark.parametrize("scorer_id", COMPUTED)
def test_nothing_computed_changed_under_an_old_version(scorer_id: str) -> None:
    scorer = COMPUTED[scorer_id]
    seen = [dict(scorer.step_schemas), scorer.reasons]
    for options in COMPUTED_OPTIONS.get(scorer_id, [{}]):
        for inputs in COMPUTED_TEXTS:
            result = scorer.compute(inputs, scorer.options.model_validate(options))
            seen.append(
                {
                    "value": result.value and round(result.value, 6),
                    "analysis": rounded(result.analysis.model_dump(mode="json")),
                    "sentence": [result.sentence, dict(result.facts)],
                }
            )
    refuse_change(scorer, sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16])


def rounded(value: Any) -> Any:
    """What a computation found, without the last places, which processors may differ in."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def refuse_change(scorer: Measure, now: str) -> None:
    note = f'raise the version and note {{"{scorer.id}": {{"...": "{now}"}}}}'
    assert KNOWN.get(scorer.id, {}).get(scorer.version) == now, note


def test_versions_have_fingerprints_of_their_own() -> None:
    for versions in KNOWN.values():
        assert len(set(versions.values())) == len(versions)
