"""Settings: `ASSAY_*` variables (or a `.env` file), read once and frozen; a wrong value stops the start."""

import os
from pathlib import Path
from typing import Annotated

from dotenv import dotenv_values
from pydantic import Field, SecretStr, StringConstraints, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

ENV_FILE = ".env"


class SettingsError(Exception):
    """A setting is wrong; the message is one line per fault and repeats no value."""


class Settings(BaseSettings):
    """Everything an operator can set."""

    model_config = SettingsConfigDict(
        env_prefix="ASSAY_", env_file=ENV_FILE, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    host: str = Field("127.0.0.1", description="Address the API listens on")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(8000, description="Port the API listens on")
    data_dir: Path = Field(
        Path("data"), description="Where the embedded Valkey keeps its file, and `assay up` its logs"
    )
    log_level: Annotated[str, StringConstraints(pattern="^(debug|info|warning|error)$")] = Field(
        "info", description="`debug`, `info`, `warning` or `error`"
    )

    redis_url: SecretStr | None = Field(
        None, description="Runs and queue: redis://, rediss:// or unix://; default: embedded"
    )
    cache_redis_url: SecretStr | None = Field(None, description="Prompt/response cache; default: the same server")

    judge_model: str | None = Field(None, description="provider/name of the default judge")
    judge_base_url: str | None = Field(None, description="Base URL of an OpenAI-compatible endpoint")
    judge_api_key: SecretStr | None = Field(None, description="Its key; known providers also read their own variable")
    models_file: Path | None = Field(None, description="TOML file with several judges")
    local_model: Path | None = Field(None, description="GGUF file for the local judge that `assay up` starts")
    judge_context_tokens: Annotated[int, Field(ge=1024)] | None = Field(
        None, description="Tokens the judge takes, reply included; default: what is known of the model"
    )
    judge_max_output_tokens: Annotated[int, Field(ge=64)] | None = Field(
        None, description="Tokens one reply may take; default: what is known of the model"
    )
    judge_timeout_s: Annotated[float, Field(gt=0, le=3600)] = Field(60.0, description="One judge call, answer included")
    judge_connect_timeout_s: Annotated[float, Field(gt=0, le=60)] = Field(
        5.0, description="Connecting to a judge's server"
    )
    judge_max_retries: Annotated[int, Field(ge=0, le=10)] = Field(2, description="Retries of a failed judge call")
    judge_max_in_flight: Annotated[int, Field(ge=1, le=10_000)] = Field(
        256, description="Calls at once per process and judge"
    )
    judge_requests_per_minute: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Calls of ASSAY_JUDGE_MODEL a minute, all processes together"
    )
    judge_tokens_per_minute: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Its tokens a minute, prompts and replies, all processes together"
    )
    judge_max_in_flight_total: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Its calls at once, all processes together"
    )
    judge_fallbacks: str | None = Field(
        None, description="Judges that answer while the default one can't: provider/name, comma between"
    )

    scorers_dir: Path | None = Field(
        None, description="Folder of scorer definitions, .toml or .json, for all tenants; read at the start"
    )

    workers: Annotated[int, Field(ge=0, le=64)] = Field(1, description="Worker processes that `assay up` starts")
    worker_concurrency: Annotated[int, Field(ge=1, le=1024)] = Field(
        64, description="Runs at once in one worker process"
    )
    worker_grace_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        30.0, description="How long a stopping worker finishes runs"
    )
    worker_metrics_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        9464, description="First port for a worker's /metrics, each worker of a machine takes the next; 0: none"
    )
    run_ttl: Annotated[int, Field(ge=60)] = Field(7 * 86_400, description="Seconds a run is kept")
    cache_ttl: Annotated[int, Field(ge=1)] = Field(86_400, description="Seconds a reply is cached")
    idempotency_ttl: Annotated[int, Field(ge=60)] = Field(
        86_400, description="Seconds an Idempotency-Key is remembered"
    )
    run_timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] = Field(
        300_000, description="Deadline of a run that names none"
    )
    inline_wait_s: Annotated[float, Field(gt=0, le=3600)] = Field(60.0, description="Longest inline wait before 202")
    run_lease_s: Annotated[float, Field(ge=1, le=600)] = Field(
        15.0, description="A running run is taken over when its lease ends"
    )
    queue_limit: Annotated[int, Field(ge=1)] = Field(
        50_000, description="Waiting runs beyond this are refused with 503"
    )
    max_body_bytes: Annotated[int, Field(ge=1024)] = Field(
        4_194_304, description="Larger request bodies are refused with 413"
    )
    docs: bool = Field(True, description="Serve /docs")


def environment() -> dict[str, str]:
    """Return the process's environment over what the `.env` file says, for variables that are not ours (keys)."""
    from_file = {name: value for name, value in dotenv_values(ENV_FILE).items() if value is not None}
    return from_file | dict(os.environ)


def load_settings() -> Settings:
    """Read the environment; raises SettingsError with a line that names the variable and what it takes."""
    try:
        return Settings()
    except ValidationError as error:
        lines = [
            f"ASSAY_{'.'.join(str(part) for part in fault['loc']).upper()}: {fault['msg']}" for fault in error.errors()
        ]
        raise SettingsError("\n".join(lines)) from None
