"""The models file: TOML that lists several judges, with their limits and prices but never a key.

default = "openai/gpt-4.1-mini"

[[models]]
id = "openai/gpt-4.1-mini"
context_tokens = 400_000
input_price = 0.25          # US dollars per million tokens
output_price = 2.0
reasoning_tokens = 2_000

[[models]]
id = "vllm/qwen"
base_url = "http://10.0.0.5:8000"
model = "Qwen/Qwen3-32B"
parameters = { seed = 7, extra = { chat_template_kwargs = { enable_thinking = false } } }
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from app.adapters.base_url import completions_url
from app.domain.request import ModelId
from app.settings import SettingsError

_RESERVED = {
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "response_format",
    "seed",
    "stream",
    "temperature",
    "top_logprobs",
    "top_p",
}


def _check_url(url: str) -> str:
    try:
        completions_url(url)
    except ValueError as error:
        raise PydanticCustomError("base_url", "{fault}", {"fault": str(error)}) from None
    return url


def _check_extra(extra: dict[str, Any]) -> dict[str, Any]:
    if reserved := sorted(_RESERVED & set(extra)):
        raise PydanticCustomError("reserved", "Assay sets {names} itself", {"names": ", ".join(reserved)})
    return extra


class _Entry(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True, protected_namespaces=()
    )


class Parameters(_Entry):
    """What is sent with every call; `extra` goes into the request body as it is."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    extra: Annotated[dict[str, Any], AfterValidator(_check_extra)] = Field(default_factory=dict)

    def as_body(self) -> dict[str, Any]:
        """Return the parameters under their names in the request body."""
        return self.model_dump(exclude={"extra"}, exclude_none=True) | self.extra


class ModelEntry(_Entry):
    """One judge; what is left out comes from its provider or from the settings."""

    id: ModelId
    base_url: Annotated[str, AfterValidator(_check_url)] | None = None
    api_key_env: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        None, description="Name of the variable that holds the key"
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="Its name at the provider, when it is not what follows the slash in id"
    )
    context_tokens: Annotated[int, Field(ge=1_024)] | None = None
    max_output_tokens: Annotated[int, Field(ge=64)] | None = None
    reasoning_tokens: Annotated[int, Field(ge=0)] = Field(0, description="Allowed on top of the reply for thinking")
    input_price: Annotated[float, Field(ge=0)] | None = None
    output_price: Annotated[float, Field(ge=0)] | None = None
    max_in_flight: Annotated[int, Field(ge=1, le=10_000)] | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = Field(None, description="All processes together")
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = Field(None, description="All processes together")
    max_in_flight_total: Annotated[int, Field(ge=1)] | None = Field(None, description="All processes together")
    fallbacks: Annotated[list[ModelId], Field(max_length=10)] = Field(
        default_factory=list, description="Ids of models that answer while this one can't, in order"
    )
    timeout_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    parameters: Parameters = Parameters()

    @model_validator(mode="after")
    def _prices_go_together(self) -> Self:
        if (self.input_price is None) != (self.output_price is None):
            raise PydanticCustomError("prices", "Set input_price and output_price, or neither")
        return self


class ModelsFile(_Entry):
    """Several judges, and which of them is used when a request names none."""

    default: ModelId | None = None
    models: Annotated[list[ModelEntry], Field(min_length=1, max_length=200)]

    @model_validator(mode="after")
    def _ids_are_right(self) -> Self:
        ids = [entry.id for entry in self.models]
        if len(set(ids)) < len(ids):
            raise PydanticCustomError("repeated", "Every model needs an id of its own")
        if self.default is not None and self.default not in ids:
            raise PydanticCustomError("default", "default must be the id of one of the models")
        for entry in self.models:
            _check_fallbacks(entry, ids)
        return self


def _check_fallbacks(entry: ModelEntry, ids: list[str]) -> None:
    fallbacks = entry.fallbacks
    if len(set(fallbacks)) < len(fallbacks) or entry.id in fallbacks or not set(fallbacks) <= set(ids):
        fault = "fallbacks of {id} must be ids of other models of this file, each once"
        raise PydanticCustomError("fallbacks", fault, {"id": entry.id})


def read_models_file(path: Path) -> ModelsFile:
    """Return the file's content; raises SettingsError with a line for every fault."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
        return ModelsFile.model_validate(document)
    except OSError as error:
        raise SettingsError(f"ASSAY_MODELS_FILE: {path.name} can't be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        where = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
        raise SettingsError(f"{path.name}: this is not TOML: {where}") from None
    except ValidationError as error:
        raise SettingsError("\n".join(f"{path.name}: {_line(fault)}" for fault in error.errors())) from None


def _line(fault: ErrorDetails) -> str:
    where = ".".join(str(part) for part in fault["loc"])
    if where.endswith("api_key"):
        return f"{where}: a key does not belong in this file; name the variable that holds it in api_key_env"
    return f"{where}: {fault['msg']}" if where else fault["msg"]
