"""What is known about providers beforehand, so that `provider/name` and a key are enough."""

from dataclasses import dataclass

from app.adapters.chat_dialect import FULL, Dialect, ReplyFormat

# Hosted models of the last years read at least this; a models file says more for those that read more.
_HOSTED_CONTEXT = 128_000
# What a server of unknown make is trusted with until a models file says more.
_UNKNOWN_CONTEXT = 8_192


@dataclass(frozen=True, slots=True)
class Provider:
    """Defaults of one provider; `base_url` None when every customer has another one."""

    base_url: str | None
    key_variable: str | None = None
    key_header: str = "authorization"
    context_tokens: int = _HOSTED_CONTEXT
    dialect: Dialect = FULL


_NEW_TOKEN_FIELD = Dialect(token_fields=("max_completion_tokens", "max_tokens"))

PROVIDERS: dict[str, Provider] = {
    # max_tokens is deprecated there, and refused by its reasoning models.
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", dialect=_NEW_TOKEN_FIELD),
    "azure": Provider(None, "AZURE_OPENAI_API_KEY", key_header="api-key", dialect=_NEW_TOKEN_FIELD),
    # Takes response_format without complaint and ignores it, so that there would be nothing to learn from.
    "anthropic": Provider(
        "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", dialect=Dialect(reply_format=ReplyFormat.PROMPT)
    ),
    "google": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": Provider(
        "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", dialect=Dialect(reply_format=ReplyFormat.OBJECT)
    ),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", context_tokens=32_000),
    # Ollama cuts longer prompts without a word: never trust it with more than its own default.
    "ollama": Provider("http://127.0.0.1:11434/v1", context_tokens=4_096),
    "local": Provider(None, context_tokens=4_096),
}

UNKNOWN = Provider(None, context_tokens=_UNKNOWN_CONTEXT)
