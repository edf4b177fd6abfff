"""What docs/custom-scorers.md shows is what happens."""

import re
import tomllib
from pathlib import Path

from app.custom.compiled import compiled
from app.custom.definition import ScorerDefinition
from app.custom.dry_run import dry_run

PAGE = (Path(__file__).parents[3] / "docs/custom-scorers.md").read_text("utf-8")


def test_the_worked_example() -> None:
    block = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    definition = ScorerDefinition.model_validate(tomllib.loads(block))
    assert definition.example is not None
    shown = dry_run(compiled(definition), definition.example)
    assert "(0.5 + 0) / 2 = 0.25, `interpretation` is `vague`" in PAGE
    assert (shown.score, shown.interpretation) == (0.25, "vague")


def test_every_field_is_told() -> None:
    for name, field in ScorerDefinition.model_fields.items():
        assert f"`{field.alias or name}`" in PAGE
