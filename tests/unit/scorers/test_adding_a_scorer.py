"""The scorer in docs/adding-a-scorer.md works as it stands there."""

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from app.domain.run import RunStatus
from app.judge.scorer import Scorer
from app.ports import Prompt
from tests.unit.fakes import ScriptedModel
from tests.unit.judge.runs import Bench

PAGE = (Path(__file__).parents[3] / "docs/adding-a-scorer.md").read_text(encoding="utf-8")


@pytest.fixture
def scorer() -> Scorer:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    module = ModuleType("politeness")
    exec(compile(source, "docs/adding-a-scorer.md", "exec"), module.__dict__)
    found = module.SCORER
    assert isinstance(found, Scorer)
    return found


def reply(prompt: Prompt) -> str:
    if prompt.name == "reason":
        return json.dumps({"reason": "One of two is rude."})
    field = "label" if "label" in json.dumps(prompt.schema) else "verdict"
    verdicts = [{"n": 1, "reason": "Kind.", field: "yes"}, {"n": 2, "reason": "Rude.", field: "no"}]
    if field == "label":
        verdicts = [{name: value for name, value in verdict.items() if name != "reason"} for verdict in verdicts]
    return json.dumps({"verdicts": verdicts})


@pytest.mark.anyio
async def test_it_scores_by_the_share_of_polite_segments(scorer: Scorer) -> None:
    run = await Bench(ScriptedModel(reply)).score("Thank you very much. Go away now.", scorer)
    assert run.error is None
    assert (run.status, run.score, run.interpretation) == (RunStatus.COMPLETED, 0.5, "partly polite")
    assert run.analyze_step_result is not None
    assert [verdict["verdict"] for verdict in run.analyze_step_result["verdicts"]] == ["yes", "no"]
