from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.adapters.chat_dialect import ReplyFormat
from app.adapters.chat_http import ChatHttpModel
from app.adapters.judge_chain import JudgeChain
from app.adapters.judge_models import JudgeModels, load_models
from app.adapters.judge_spec import Limits
from app.adapters.providers import PROVIDERS
from app.settings import Settings, SettingsError
from tests.unit.adapters.chat_fakes import Counts, HeldClock


def load(environ: dict[str, str] | None = None, **settings: Any) -> JudgeModels:
    return load_models(
        Settings(_env_file=None, **settings),
        HeldClock(),
        Counts(),  # type: ignore[arg-type]
        environ or {},
    )


def faults(environ: dict[str, str] | None = None, **settings: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(environ, **settings)
    return str(caught.value).splitlines()


def judge(models: JudgeModels, model_id: str) -> ChatHttpModel:
    model = models.get(model_id)
    assert isinstance(model, ChatHttpModel)
    return model


def key_sent(models: JudgeModels, model_id: str) -> str | None:
    headers = judge(models, model_id)._endpoint._headers
    return headers.get("authorization") or headers.get("api-key")


@pytest.fixture
def models_file(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        path = tmp_path / "models.toml"
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.mark.parametrize("empty", [None, ""])
def test_no_judge_is_no_error(empty: str | None) -> None:
    models = load(judge_model=empty, judge_base_url=empty)

    assert (models.default, models.ids) == (None, ())
    with pytest.raises(KeyError):
        models.get("openai/gpt-5-mini")


@pytest.mark.parametrize("name", [name for name, provider in PROVIDERS.items() if provider.base_url])
def test_a_known_provider_needs_its_key_only(name: str) -> None:
    variable = PROVIDERS[name].key_variable
    environ = {variable: " sk-1 \n"} if variable else {}

    models = load(environ, judge_model=f"{name}/some/model")

    spec = judge(models, f"{name}/some/model")._spec
    assert models.default == f"{name}/some/model"
    assert models.ids == (f"{name}/some/model",)
    assert spec.model == "some/model"
    assert spec.url.startswith(str(PROVIDERS[name].base_url))
    assert spec.url.endswith("/chat/completions")
    assert key_sent(models, f"{name}/some/model") == ("Bearer sk-1" if variable else None)


@pytest.mark.parametrize("name", [name for name, provider in PROVIDERS.items() if provider.key_variable])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_named(name: str, value: str | None) -> None:
    variable = str(PROVIDERS[name].key_variable)
    environ = {} if value is None else {variable: value}
    base_url = None if PROVIDERS[name].base_url else "https://me.openai.azure.com/openai/v1"

    (line,) = faults(environ, judge_model=f"{name}/m", judge_base_url=base_url)

    assert line.startswith(f"{variable}: ")


def test_the_setting_beats_the_providers_variable() -> None:
    models = load({"OPENAI_API_KEY": "sk-env"}, judge_model="openai/m", judge_api_key=SecretStr("sk-own"))

    assert key_sent(models, "openai/m") == "Bearer sk-own"


def test_azure_takes_its_key_in_its_own_header() -> None:
    models = load(
        {"AZURE_OPENAI_API_KEY": "az-1"}, judge_model="azure/m", judge_base_url="https://me.openai.azure.com/openai/v1"
    )

    assert judge(models, "azure/m")._endpoint._headers["api-key"] == "az-1"
    assert "authorization" not in judge(models, "azure/m")._endpoint._headers


@pytest.mark.parametrize("model_id", ["openai/gpt-oss", "vllm/Qwen/Qwen3-8B", "local/smollm2", "anything.else/m"])
def test_any_name_serves_a_base_url_without_a_key(model_id: str) -> None:
    models = load({"OPENAI_API_KEY": "sk-env"}, judge_model=model_id, judge_base_url="http://10.0.0.5:8000/")

    assert judge(models, model_id)._spec.url == "http://10.0.0.5:8000/v1/chat/completions"
    assert key_sent(models, model_id) is None


@pytest.mark.parametrize("base_url", ["https://api.openai.com", "https://api.openai.com/v1/"])
def test_a_providers_key_goes_to_its_own_address_however_spelled(base_url: str) -> None:
    models = load({"OPENAI_API_KEY": "sk-env"}, judge_model="openai/m", judge_base_url=base_url)

    assert key_sent(models, "openai/m") == "Bearer sk-env"


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        ({"judge_base_url": "http://host"}, "ASSAY_JUDGE_MODEL"),
        ({"judge_api_key": SecretStr("sk-1")}, "ASSAY_JUDGE_MODEL"),
        ({"judge_model": "gpt-5-mini"}, "ASSAY_JUDGE_MODEL"),
        ({"judge_model": "openai/"}, "ASSAY_JUDGE_MODEL"),
        ({"judge_model": "/m"}, "ASSAY_JUDGE_MODEL"),
        ({"judge_model": "open ai/m"}, "ASSAY_JUDGE_MODEL"),
        ({"judge_model": "acme/m"}, "ASSAY_JUDGE_BASE_URL"),
        ({"judge_model": "local/m"}, "ASSAY_JUDGE_BASE_URL"),
        ({"judge_model": "acme/m", "judge_base_url": "host:8000"}, "ASSAY_JUDGE_BASE_URL"),
        ({"judge_model": "acme/m", "judge_base_url": "http://u:sk-1@host"}, "ASSAY_JUDGE_BASE_URL"),
        ({"judge_model": "openai/m", "judge_api_key": SecretStr("sk-1\nx")}, "ASSAY_JUDGE_API_KEY"),
        ({"judge_model": "openai/m", "judge_api_key": SecretStr("sk-1 sk-2")}, "ASSAY_JUDGE_API_KEY"),
        ({"judge_model": "openai/m", "judge_api_key": SecretStr("clé-1")}, "ASSAY_JUDGE_API_KEY"),
        ({"models_file": Path("no-such-file.toml")}, "ASSAY_MODELS_FILE"),
        ({"judge_requests_per_minute": 60}, "ASSAY_JUDGE_MODEL"),
        ({"judge_tokens_per_minute": 60}, "ASSAY_JUDGE_MODEL"),
        ({"judge_max_in_flight_total": 60}, "ASSAY_JUDGE_MODEL"),
        ({"judge_fallbacks": "ollama/m"}, "ASSAY_JUDGE_FALLBACKS"),
        ({"judge_model": "ollama/m", "judge_fallbacks": "ollama/m"}, "ASSAY_JUDGE_FALLBACKS"),
        ({"judge_model": "ollama/m", "judge_fallbacks": "ollama/n,ollama/n"}, "ASSAY_JUDGE_FALLBACKS"),
        ({"judge_model": "ollama/m", "judge_fallbacks": "ollama/n,"}, "ASSAY_JUDGE_FALLBACKS"),
        ({"judge_model": "ollama/m", "judge_fallbacks": "gpt-5-mini"}, "ASSAY_JUDGE_FALLBACKS"),
    ],
)
def test_a_wrong_setting_is_one_line_without_its_value(settings: dict[str, Any], variable: str) -> None:
    (line,) = faults(**settings)

    assert line.startswith(f"{variable}: ")
    assert "sk-1" not in line


FILE = """
default = "vllm/qwen"

[[models]]
id = "openai/gpt-5-mini"
context_tokens = 400_000
max_output_tokens = 16_000
reasoning_tokens = 2_000
input_price = 0.25
output_price = 2.0
max_in_flight = 20
timeout_s = 120

[[models]]
id = "vllm/qwen"
base_url = "http://10.0.0.5:8000"
api_key_env = "GATEWAY_KEY"
model = "Qwen/Qwen3-32B"
parameters = { temperature = 0.2, top_p = 0.9, seed = 7, extra = { reasoning_effort = "low" } }
"""
KEYS = {"OPENAI_API_KEY": "sk-o", "GATEWAY_KEY": "sk-g"}


def test_a_models_file(models_file: Any) -> None:
    models = load(KEYS, models_file=models_file(FILE))

    assert (models.default, models.ids) == ("vllm/qwen", ("openai/gpt-5-mini", "vllm/qwen"))
    hosted, own = judge(models, "openai/gpt-5-mini"), judge(models, "vllm/qwen")
    assert (hosted.context_tokens, hosted.max_output_tokens) == (400_000, 16_000)
    assert (hosted._spec.max_in_flight, hosted._spec.timeout_s, hosted._spec.reasoning_tokens) == (20, 120, 2_000)
    assert hosted._spec.cost_usd(1_000_000, 1_000_000) == pytest.approx(2.25)
    assert hosted._spec.parameters == {"temperature": 0.0}
    assert (own._spec.model, own._spec.url) == ("Qwen/Qwen3-32B", "http://10.0.0.5:8000/v1/chat/completions")
    assert own._spec.parameters == {"temperature": 0.2, "top_p": 0.9, "seed": 7, "reasoning_effort": "low"}
    assert own._spec.cost_usd(1, 1) is None
    assert (own._spec.max_in_flight, own._spec.timeout_s) == (256, 60.0)
    assert key_sent(models, "openai/gpt-5-mini") == "Bearer sk-o"
    assert key_sent(models, "vllm/qwen") == "Bearer sk-g"


def test_the_setting_names_the_default_among_the_files(models_file: Any) -> None:
    models = load(KEYS, models_file=models_file(FILE), judge_model="openai/gpt-5-mini")

    assert models.default == "openai/gpt-5-mini"
    assert models.ids == ("openai/gpt-5-mini", "vllm/qwen")


def test_the_settings_overrule_the_file_for_the_judge_they_name(models_file: Any) -> None:
    models = load(
        KEYS,
        models_file=models_file(FILE),
        judge_model="vllm/qwen",
        judge_base_url="http://10.0.0.9",
        judge_api_key=SecretStr("sk-s"),
        judge_context_tokens=20_000,
        judge_max_output_tokens=1_000,
    )

    own = judge(models, "vllm/qwen")
    assert own._spec.url == "http://10.0.0.9/v1/chat/completions"
    assert (own.context_tokens, own.max_output_tokens) == (20_000, 1_000)
    assert key_sent(models, "vllm/qwen") == "Bearer sk-s"
    assert judge(models, "openai/gpt-5-mini").context_tokens == 400_000
    assert key_sent(models, "openai/gpt-5-mini") == "Bearer sk-o"


def test_the_setting_adds_a_judge_beside_the_files(models_file: Any) -> None:
    models = load(KEYS, models_file=models_file(FILE), judge_model="ollama/llama3.2")

    assert models.default == "ollama/llama3.2"
    assert models.ids == ("ollama/llama3.2", "openai/gpt-5-mini", "vllm/qwen")


LIMITS = """
default = "vllm/a"

[[models]]
id = "vllm/a"
base_url = "http://10.0.0.5:8000"
requests_per_minute = 60
tokens_per_minute = 100_000
max_in_flight_total = 8
fallbacks = ["vllm/b", "ollama/m"]

[[models]]
id = "vllm/b"
base_url = "http://10.0.0.6:8000"
fallbacks = ["vllm/a"]

[[models]]
id = "ollama/m"
"""


def chained(models: JudgeModels, model_id: str) -> list[str]:
    chain = models.get(model_id)
    assert isinstance(chain, JudgeChain)
    return [model.id for model in (chain._judge, *chain._fallbacks)]


def test_limits_and_fallbacks_of_a_file(models_file: Any) -> None:
    models = load(models_file=models_file(LIMITS))

    chain = models.get("vllm/a")
    assert isinstance(chain, JudgeChain)
    assert chain._judge._spec.limits == Limits(60, 100_000, 8)
    assert chained(models, "vllm/a") == ["vllm/a", "vllm/b", "ollama/m"]
    assert chained(models, "vllm/b") == ["vllm/b", "vllm/a"]
    assert not judge(models, "ollama/m")._spec.limits.any


def test_limits_of_the_settings_are_those_of_the_judge_they_name(models_file: Any) -> None:
    models = load(models_file=models_file(FILE), environ=KEYS, judge_model="vllm/qwen", judge_requests_per_minute=5)

    assert judge(models, "vllm/qwen")._spec.limits == Limits(requests_per_minute=5)
    assert not judge(models, "openai/gpt-5-mini")._spec.limits.any


def test_fallbacks_of_the_settings_are_those_of_the_default_judge(models_file: Any) -> None:
    models = load(models_file=models_file(LIMITS), judge_fallbacks=" ollama/m , ollama/n ")

    assert chained(models, "vllm/a") == ["vllm/a", "ollama/m", "ollama/n"]
    assert models.ids == ("vllm/a", "vllm/b", "ollama/m", "ollama/n")


def test_a_fallback_needs_no_file_where_its_provider_is_known() -> None:
    models = load({"OPENAI_API_KEY": "sk-o"}, judge_model="ollama/m", judge_fallbacks="openai/gpt-5-mini")

    assert chained(models, "ollama/m") == ["ollama/m", "openai/gpt-5-mini"]


def test_a_fallback_without_its_key_is_a_fault() -> None:
    (line,) = faults(judge_model="ollama/m", judge_fallbacks="openai/gpt-5-mini")

    assert line.startswith("OPENAI_API_KEY: ")


def test_one_account_has_one_name_among_processes_whatever_its_key() -> None:
    names = {
        judge(load({"OPENAI_API_KEY": key}, judge_model="openai/m"), "openai/m")._spec.shared_name for key in ("a", "b")
    }
    other = judge(load({"OPENAI_API_KEY": "a"}, judge_model="openai/n"), "openai/n")._spec.shared_name

    assert len(names) == 1
    assert other not in names


def test_a_single_model_is_the_default(models_file: Any) -> None:
    assert load(models_file=models_file('[[models]]\nid = "ollama/m"\n')).default == "ollama/m"


def test_several_models_need_a_default(models_file: Any) -> None:
    (line,) = faults(KEYS, models_file=models_file(FILE.replace("default =", "#")))

    assert "default" in line
    assert "models.toml" in line


def test_every_fault_has_its_line(models_file: Any) -> None:
    lines = faults(models_file=models_file(FILE))

    assert [line.partition(":")[0] for line in lines] == ["OPENAI_API_KEY", "GATEWAY_KEY"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("default = ", "TOML"),
        ("[[models]]\nid = 'a/b'\nid = 'c/d'", "TOML"),
        ("", "models: Field required"),
        ("models = []", "models: "),
        ("[[models]]\n", "models.0.id: Field required"),
        ("[[models]]\nid = 'gpt'", "models.0.id: "),
        ("[[models]]\nid = 'a/b'\ncontext_size = 9", "models.0.context_size: Extra inputs"),
        ("[[models]]\nid = 'a/b'\napi_key = 'sk-1'", "api_key_env"),
        ("[[models]]\nid = 'a/b'\napi_key_env = 'sk-1'", "models.0.api_key_env: "),
        ("[[models]]\nid = 'a/b'\nbase_url = 'http://u:sk-1@host'", "models.0.base_url: "),
        ("[[models]]\nid = 'a/b'\ncontext_tokens = 0", "models.0.context_tokens: "),
        ("[[models]]\nid = 'a/b'\ninput_price = 1.0", "input_price and output_price"),
        ("[[models]]\nid = 'a/b'\ninput_price = nan\noutput_price = 1", "models.0.input_price: "),
        ("[[models]]\nid = 'a/b'\nparameters = { temperature = 9 }", "models.0.parameters.temperature: "),
        ("[[models]]\nid = 'a/b'\nparameters = { effort = 'low' }", "models.0.parameters.effort: "),
        ("[[models]]\nid = 'a/b'\nparameters = { extra = { messages = [] } }", "messages"),
        ("[[models]]\nid = 'a/b'\n[[models]]\nid = 'a/b'", "id of its own"),
        ("default = 'c/d'\n[[models]]\nid = 'a/b'", "default must be"),
        ("[[models]]\nid = 'a/b'\nrequests_per_minute = 0", "models.0.requests_per_minute: "),
        ("[[models]]\nid = 'a/b'\ntokens_per_minute = 0", "models.0.tokens_per_minute: "),
        ("[[models]]\nid = 'a/b'\nmax_in_flight_total = 0", "models.0.max_in_flight_total: "),
        ("[[models]]\nid = 'a/b'\nfallbacks = ['a/b']", "fallbacks of a/b"),
        ("[[models]]\nid = 'a/b'\nfallbacks = ['c/d']", "fallbacks of a/b"),
        ("[[models]]\nid = 'a/b'\nfallbacks = ['c/d', 'c/d']\n[[models]]\nid = 'c/d'", "fallbacks of a/b"),
    ],
)
def test_a_wrong_file_is_told_by_place_and_not_by_value(models_file: Any, text: str, says: str) -> None:
    (line,) = faults(models_file=models_file(text))

    assert line.startswith("models.toml: ")
    assert says in line
    assert "sk-1" not in line


def test_bytes_that_are_no_text_are_no_models_file(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_bytes(b"\xff\xfe\x00")

    (line,) = faults(models_file=tmp_path / "models.toml")

    assert "not UTF-8" in line


def test_an_entry_of_an_unknown_provider_needs_a_base_url(models_file: Any) -> None:
    (line,) = faults(models_file=models_file("[[models]]\nid = 'acme/m'"))

    assert line.startswith("base_url of acme/m: ")


def test_what_is_known_beforehand_is_not_learned_by_paying() -> None:
    formats = {name: provider.dialect.reply_format for name, provider in PROVIDERS.items()}

    assert formats["anthropic"] is ReplyFormat.PROMPT
    assert formats["deepseek"] is ReplyFormat.OBJECT
    assert PROVIDERS["openai"].dialect.token_fields[0] == "max_completion_tokens"


@pytest.mark.parametrize(("model_id", "tokens"), [("ollama/m", 4_096), ("openai/m", 128_000), ("acme/m", 8_192)])
def test_context_sizes_are_careful(model_id: str, tokens: int) -> None:
    base_url = "http://host" if model_id.startswith("acme") else None
    models = load({"OPENAI_API_KEY": "sk-1"}, judge_model=model_id, judge_base_url=base_url)

    assert judge(models, model_id).context_tokens == tokens
    assert judge(models, model_id).max_output_tokens <= tokens // 2


def test_keys_in_the_env_file_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    (tmp_path / ".env").write_text("GROQ_API_KEY=gsk-1\n", "utf-8")

    models = load_models(Settings(judge_model="groq/m"), HeldClock(), Counts())  # type: ignore[arg-type]

    assert key_sent(models, "groq/m") == "Bearer gsk-1"


def test_no_repr_of_the_models_shows_a_key() -> None:
    models = load(judge_model="openai/m", judge_api_key=SecretStr("sk-own"))

    shown = [repr(models), repr(models.get("openai/m")), repr(judge(models, "openai/m")._spec), str(vars(models))]

    assert not any("sk-own" in text for text in shown)
