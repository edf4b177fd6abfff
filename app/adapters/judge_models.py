"""The configured judges, from the settings and the models file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from app import __version__
from app.adapters.base_url import completions_url
from app.adapters.chat_http import ChatHttpModel
from app.adapters.judge_http import JudgeHttp
from app.adapters.judge_spec import JudgeSpec
from app.adapters.models_file import ModelEntry, read_models_file
from app.adapters.providers import PROVIDERS, UNKNOWN, Provider
from app.adapters.retries import RetryPolicy
from app.domain.request import ModelId
from app.ports import ChatModel, Clock, Telemetry
from app.settings import Settings, SettingsError, environment

_MODEL_ID = TypeAdapter(ModelId)
_OWN_KEY = "ASSAY_JUDGE_API_KEY"
_MOST_OUTPUT = 8_192


class JudgeModels:
    """The judges of a process (implements ports.ChatModels)."""

    def __init__(self, http: JudgeHttp, models: Mapping[str, ChatModel], default: str | None) -> None:
        self._http = http
        self._models = dict(models)
        self.default = default
        self.ids = tuple(self._models)

    def get(self, model_id: str) -> ChatModel:
        """Return the judge with that id; raises KeyError."""
        return self._models[model_id]

    async def aclose(self) -> None:
        """Close the connections to all judges."""
        await self._http.aclose()


@dataclass(frozen=True, slots=True)
class _Key:
    """A key and the variable it comes from; without a value, the variable that would hold it."""

    name: str
    value: str | None = field(default=None, repr=False)

    def header(self, provider: Provider) -> dict[str, str]:
        if self.value is None:
            return {}
        scheme = "Bearer " if provider.key_header == "authorization" else ""
        return {provider.key_header: scheme + self.value}


def load_models(
    settings: Settings, clock: Clock, telemetry: Telemetry, environ: Mapping[str, str] | None = None
) -> JudgeModels:
    """Return the judges that the settings and the models file name; none configured is not an error.

    Keys are read from `environ`, by default the process's environment and the `.env` file. Raises SettingsError with a
    line for every fault.
    """
    environ = environment() if environ is None else environ
    entries, default = _chosen(settings)
    http = JudgeHttp(settings.judge_connect_timeout_s)
    retries = RetryPolicy(settings.judge_max_retries)
    models: dict[str, ChatModel] = {}
    faults: list[str] = []
    for entry in entries:
        try:
            spec, headers = _resolved(entry, settings, environ)
            endpoint = http.endpoint(spec.url, headers)
        except (SettingsError, ValueError) as error:
            faults.append(str(error))
            continue
        models[entry.id] = ChatHttpModel(spec, endpoint, clock, telemetry, retries)
    if faults:
        raise SettingsError("\n".join(faults))
    return JudgeModels(http, models, default)


def _chosen(settings: Settings) -> tuple[list[ModelEntry], str | None]:
    """Return the entries of all judges and the id of the default one."""
    named = _named(settings)
    if settings.models_file is None:
        return ([ModelEntry(id=named)], named) if named else ([], None)
    file = read_models_file(settings.models_file)
    entries = list(file.models)
    if named and all(entry.id != named for entry in entries):
        entries.insert(0, ModelEntry(id=named))
    default = named or file.default or (entries[0].id if len(entries) == 1 else None)
    if default is None:
        name = settings.models_file.name
        raise SettingsError(f"{name}: name one of its models in default, or in ASSAY_JUDGE_MODEL")
    return entries, default


def _named(settings: Settings) -> str | None:
    """Return the id in ASSAY_JUDGE_MODEL, None when it is not set."""
    if not settings.judge_model:
        for name, value in (("BASE_URL", settings.judge_base_url), ("API_KEY", settings.judge_api_key)):
            if value:
                raise SettingsError(f"ASSAY_JUDGE_MODEL: set it to provider/name of the model of ASSAY_JUDGE_{name}")
        return None
    try:
        return _MODEL_ID.validate_python(settings.judge_model.strip())
    except ValidationError:
        raise SettingsError("ASSAY_JUDGE_MODEL: use provider/name, such as openai/gpt-4.1-mini") from None


def _resolved(entry: ModelEntry, settings: Settings, environ: Mapping[str, str]) -> tuple[JudgeSpec, dict[str, str]]:
    """Return a judge with everything filled in, and the headers that carry its key."""
    provider_name, _, model = entry.id.partition("/")
    provider = PROVIDERS.get(provider_name, UNKNOWN)
    url = _url(entry, settings, provider)
    key = _key(entry, settings, provider, url, environ)
    named = _is_named(entry, settings)
    context_tokens = (named and settings.judge_context_tokens) or entry.context_tokens or provider.context_tokens
    max_output_tokens = (named and settings.judge_max_output_tokens) or entry.max_output_tokens
    spec = JudgeSpec(
        id=entry.id,
        model=entry.model or model,
        url=url,
        key_name=key.name,
        context_tokens=context_tokens,
        max_output_tokens=max_output_tokens or min(_MOST_OUTPUT, context_tokens // 2),
        timeout_s=entry.timeout_s or settings.judge_timeout_s,
        max_in_flight=entry.max_in_flight or settings.judge_max_in_flight,
        parameters=entry.parameters.as_body(),
        reasoning_tokens=entry.reasoning_tokens,
        input_price=entry.input_price,
        output_price=entry.output_price,
        dialect=provider.dialect,
    )
    return spec, {"user-agent": f"assay/{__version__}", **key.header(provider)}


def _is_named(entry: ModelEntry, settings: Settings) -> bool:
    """Return whether the ASSAY_JUDGE_* settings are about this judge."""
    return settings.judge_model is not None and settings.judge_model.strip() == entry.id


def _url(entry: ModelEntry, settings: Settings, provider: Provider) -> str:
    named = _is_named(entry, settings)
    base_url = (named and settings.judge_base_url) or entry.base_url or provider.base_url
    variable = "ASSAY_JUDGE_BASE_URL" if named else f"base_url of {entry.id}"
    if not base_url:
        known = ", ".join(name for name, known in PROVIDERS.items() if known.base_url)
        raise SettingsError(f"{variable}: set it, since only these providers bring their own: {known}")
    try:
        return completions_url(base_url)
    except ValueError as error:
        raise SettingsError(f"{variable}: {error}") from None


def _key(entry: ModelEntry, settings: Settings, provider: Provider, url: str, environ: Mapping[str, str]) -> _Key:
    """Return the judge's key; a provider's own variable goes to that provider's own address only."""
    named = _is_named(entry, settings)
    if named and settings.judge_api_key:
        return _checked(_Key(_OWN_KEY, settings.judge_api_key.get_secret_value()))
    own_address = provider.base_url is None or url == completions_url(provider.base_url)
    variable = entry.api_key_env or (provider.key_variable if own_address else None)
    if variable is None:
        return _Key(_OWN_KEY if named else f"api_key_env of {entry.id}")
    value = environ.get(variable)
    if not value or not value.strip():
        raise SettingsError(f"{variable}: set it to the key of {entry.id}")
    return _checked(_Key(variable, value))


def _checked(key: _Key) -> _Key:
    value = (key.value or "").strip()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise SettingsError(f"{key.name}: this is not a key: it has spaces or characters that no key has")
    return _Key(key.name, value)
