"""The scorer in docs/adding-a-scorer.md works as it stands there."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from app.domain.request import Strategy
from app.domain.run import RunStatus
from app.judge.scorer import Scorer
from tests.unit.fakes import Obedient, ScriptedModel
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


def choose(line: str, labels: list[str]) -> str:
    yes, no = labels
    return no if "Go away" in line else yes


@pytest.mark.anyio
@pytest.mark.parametrize("strategy", Strategy)
async def test_it_scores_by_the_share_of_polite_segments(scorer: Scorer, strategy: Strategy) -> None:
    bench = Bench(ScriptedModel(Obedient(choose)))
    run = await bench.score("Thank you very much. Go away now.", scorer, options={"strategy": strategy.value})
    assert run.error is None
    assert (run.status, run.score, run.interpretation) == (RunStatus.COMPLETED, 0.5, "partly polite")
    assert run.analyze_step_result is not None
    assert [verdict["verdict"] for verdict in run.analyze_step_result["verdicts"]] == ["yes", "no"]
