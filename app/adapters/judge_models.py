"""The configured judges, from the settings and the models file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis

from app import __version__
from app.adapters.base_url import completions_url
from app.adapters.chat_http import ChatHttpModel
from app.adapters.judge_chain import JudgeChain
from app.adapters.judge_gate import JudgeGate
from app.adapters.judge_http import JudgeHttp
from app.adapters.judge_limits import JudgeLimiter
from app.adapters.judge_pauses import JudgePauses
from app.adapters.judge_spec import JudgeSpec, Limits
from app.adapters.models_file import ModelEntry, read_models_file
from app.adapters.providers import PROVIDERS, UNKNOWN, Provider
from app.adapters.retries import RetryPolicy
from app.domain.request import ModelId
from app.ports import ChatModel, Clock, Telemetry
from app.settings import Settings, SettingsError, environment

_MODEL_ID = TypeAdapter(ModelId)
_OWN_KEY = "ASSAY_JUDGE_API_KEY"
_MOST_OUTPUT = 8_192
# What would be lost in silence when no judge is named.
_ABOUT_THE_NAMED = (
    "judge_base_url",
    "judge_api_key",
    "judge_requests_per_minute",
    "judge_tokens_per_minute",
    "judge_max_in_flight_total",
)


class JudgeModels:
    """The judges of a process (implements ports.ChatModels)."""

    def __init__(self, shared: "_Shared", models: Mapping[str, ChatModel], default: str | None) -> None:
        self._shared = shared
        self._models = dict(models)
        self.default = default
        self.ids = tuple(self._models)

    def get(self, model_id: str) -> ChatModel:
        """Return the judge with that id; raises KeyError."""
        return self._models[model_id]

    def start(self) -> None:
        """Begin to follow the pauses that other processes tell of."""
        self._shared.pauses.start()

    async def aclose(self) -> None:
        """Free what is held in Redis and close the connections to all judges."""
        for limiter in self._shared.limiters:
            await limiter.aclose()
        await self._shared.pauses.aclose()
        await self._shared.http.aclose()


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the judges of a process have in common."""

    http: JudgeHttp
    clock: Clock
    telemetry: Telemetry
    retries: RetryPolicy
    client: Redis | None
    pauses: JudgePauses
    limiters: list[JudgeLimiter] = field(default_factory=list)

    def model(self, spec: JudgeSpec, headers: Mapping[str, str]) -> ChatHttpModel:
        endpoint = self.http.endpoint(spec.url, headers)
        gate = JudgeGate(spec, self.clock, self.telemetry, self.pauses, self._limiter(spec))
        return ChatHttpModel(spec, endpoint, gate, self.clock, self.telemetry, self.retries)

    def _limiter(self, spec: JudgeSpec) -> JudgeLimiter | None:
        if self.client is None or not spec.limits.any:
            return None

        def waited(cause: str, seconds: float) -> None:
            self.telemetry.judge_waited(spec.id, cause, seconds)

        limiter = JudgeLimiter(self.client, spec.shared_name, spec.limits, self.clock, waited)
        self.limiters.append(limiter)
        return limiter


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
    settings: Settings,
    clock: Clock,
    telemetry: Telemetry,
    environ: Mapping[str, str] | None = None,
    client: Redis | None = None,
) -> JudgeModels:
    """Return the judges that the settings and the models file name; none configured is not an error.

    Keys are read from `environ`, by default the process's environment and the `.env` file. `client` leads to the Redis
    in which processes agree on limits and pauses; without one limits are not kept and pauses are this process's alone.
    Raises SettingsError with a line for every fault.
    """
    environ = environment() if environ is None else environ
    entries, default = _chosen(settings)
    http, retries = JudgeHttp(settings.judge_connect_timeout_s), RetryPolicy(settings.judge_max_retries)
    shared = _Shared(http, clock, telemetry, retries, client, JudgePauses(clock, client))
    models: dict[str, ChatHttpModel] = {}
    faults: list[str] = []
    for entry in entries:
        try:
            models[entry.id] = shared.model(*_resolved(entry, settings, environ))
        except (SettingsError, ValueError) as error:
            faults.append(str(error))
    if faults:
        raise SettingsError("\n".join(faults))
    return JudgeModels(shared, {entry.id: _with_fallbacks(entry, models, shared) for entry in entries}, default)


def _with_fallbacks(entry: ModelEntry, models: Mapping[str, ChatHttpModel], shared: _Shared) -> ChatModel:
    model = models[entry.id]
    if not entry.fallbacks:
        return model
    fallbacks = [models[model_id] for model_id in entry.fallbacks]
    return JudgeChain(model, fallbacks, shared.clock, shared.telemetry, shared.retries)


def _chosen(settings: Settings) -> tuple[list[ModelEntry], str | None]:
    """Return the entries of all judges, their fallbacks included, and the id of the default one."""
    entries, default = _configured(settings)
    if not settings.judge_fallbacks:
        return entries, default
    fallbacks = [_checked_id(name, "ASSAY_JUDGE_FALLBACKS") for name in settings.judge_fallbacks.split(",")]
    if default is None or default in fallbacks or len(set(fallbacks)) < len(fallbacks):
        raise SettingsError("ASSAY_JUDGE_FALLBACKS: name other judges than the default one, each once")
    known = {entry.id for entry in entries}
    entries += [ModelEntry(id=model_id) for model_id in fallbacks if model_id not in known]
    chained = [entry.model_copy(update={"fallbacks": fallbacks}) if entry.id == default else entry for entry in entries]
    return chained, default


def _configured(settings: Settings) -> tuple[list[ModelEntry], str | None]:
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
        for name in _ABOUT_THE_NAMED:
            if getattr(settings, name):
                variable = f"ASSAY_{name.upper()}"
                raise SettingsError(f"ASSAY_JUDGE_MODEL: set it to provider/name of the model of {variable}")
        return None
    return _checked_id(settings.judge_model, "ASSAY_JUDGE_MODEL")


def _checked_id(text: str, variable: str) -> str:
    try:
        return _MODEL_ID.validate_python(text.strip())
    except ValidationError:
        raise SettingsError(f"{variable}: use provider/name, such as openai/gpt-4.1-mini") from None


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
        limits=Limits(
            requests_per_minute=(named and settings.judge_requests_per_minute) or entry.requests_per_minute,
            tokens_per_minute=(named and settings.judge_tokens_per_minute) or entry.tokens_per_minute,
            in_flight=(named and settings.judge_max_in_flight_total) or entry.max_in_flight_total,
        ),
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
