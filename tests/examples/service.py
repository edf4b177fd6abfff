"""The service as it answers the examples: its own defaults, the scorers of deploy/scorers, any judge."""

from typing import Any

from app.settings import Settings
from tests.contract.running import settings_for
from tests.examples.example import ROOT

TIMEOUT_S = 900


def example_settings(redis_url: str, judge_base_url: str, model: str) -> Settings:
    """Return the settings under which examples are recorded and tried."""
    changed: dict[str, Any] = {
        "judge_model": model,
        "scorers_dir": ROOT / "deploy/scorers",
        "judge_timeout_s": TIMEOUT_S / 2,
        "run_timeout_ms": TIMEOUT_S * 1000,
        "inline_wait_s": TIMEOUT_S,
    }
    return settings_for(redis_url, judge_base_url, **changed)
