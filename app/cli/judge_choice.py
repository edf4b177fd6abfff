"""Which judge `assay up` uses: the configured one, else what it finds, else the local demonstration judge."""

import json
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from app.adapters.local_model import LocalModel, can_serve, demonstration_model, local_model
from app.adapters.providers import PROVIDERS
from app.settings import Settings, SettingsError

GGUF_MAGIC = b"GGUF"
OLLAMA_TAGS = "http://127.0.0.1:11434/api/tags"
OLLAMA_TIMEOUT_S = 0.5
PAST_PROXIES = urllib.request.build_opener(urllib.request.ProxyHandler({}))
DEFAULT_MODELS = (
    "openai/gpt-4.1-mini",
    "anthropic/claude-haiku-4-5",
    "gemini/gemini-flash-latest",
    "mistral/mistral-small-latest",
    "groq/openai/gpt-oss-20b",
    "deepseek/deepseek-chat",
    "openrouter/openai/gpt-4.1-mini",
)
"""A small, cheap model of each provider whose key may lie in the environment, in order of preference."""


class Source(Enum):
    """Why this judge."""

    CONFIGURED = auto()
    KEY = auto()
    LOCAL = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The judge: `model_id` is None when a models file or nothing names it; `key` is the variable that led to it."""

    source: Source
    model_id: str | None = None
    key: str | None = None
    local: LocalModel | None = None

    @property
    def demonstration(self) -> bool:
        """Whether its verdicts are near chance."""
        return self.local is not None and self.local.demonstration


def choose_judge(settings: Settings, environ: Mapping[str, str]) -> JudgeChoice:
    """Choose by settings first, then a local file, a provider's key, the demonstration model.

    Raises SettingsError when ASSAY_LOCAL_MODEL can't be served, and for an address or a key of no model.
    """
    for name, value in (("BASE_URL", settings.judge_base_url), ("API_KEY", settings.judge_api_key)):
        if value and not (settings.judge_model or settings.models_file):
            raise SettingsError(f"ASSAY_JUDGE_MODEL: set it to provider/name of the model of ASSAY_JUDGE_{name}")
    if settings.judge_model or settings.models_file:
        return JudgeChoice(Source.CONFIGURED, settings.judge_model)
    if settings.local_model:
        model = _operators_model(settings.local_model)
        return JudgeChoice(Source.LOCAL, model.id, local=model)
    for model_id in DEFAULT_MODELS:
        variable = key_variable(model_id)
        if environ.get(variable):
            return JudgeChoice(Source.KEY, model_id, key=variable)
    demonstration = demonstration_model() if can_serve() else None
    if demonstration is None:
        return JudgeChoice(Source.NONE)
    return JudgeChoice(Source.LOCAL, demonstration.id, local=demonstration)


def key_variable(model_id: str) -> str:
    """Return the variable that holds the key of the model's provider; raises LookupError when there is none."""
    variable = PROVIDERS[model_id.partition("/")[0]].key_variable
    if variable is None:
        raise LookupError(model_id)
    return variable


def _operators_model(path: Path) -> LocalModel:
    if not can_serve():
        raise SettingsError("ASSAY_LOCAL_MODEL: serving a model needs the package xllamacpp, which `make up` installs")
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise SettingsError(f"ASSAY_LOCAL_MODEL: the file can't be read ({error.strerror})") from error
    if magic != GGUF_MAGIC:
        raise SettingsError("ASSAY_LOCAL_MODEL: the file is not in the GGUF format")
    return local_model(path)


def find_ollama() -> str | None:
    """Return the id of a model that an Ollama on this machine has, or None; takes at most half a second."""
    try:
        with PAST_PROXIES.open(OLLAMA_TAGS, timeout=OLLAMA_TIMEOUT_S) as answer:
            names = [str(model["name"]) for model in json.load(answer)["models"]]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    chat_models = [name for name in names if "embed" not in name]
    return f"ollama/{chat_models[0]}" if chat_models else None
