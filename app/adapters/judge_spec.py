"""What is fixed about one judge model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from app.adapters.chat_dialect import FULL, Dialect


@dataclass(frozen=True, slots=True)
class Limits:
    """What all processes together may ask of a judge; None: as much as they like."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    in_flight: int | None = None

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return any((self.requests_per_minute, self.tokens_per_minute, self.in_flight))


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """Where a judge is and what it can do; its key is not here, `key_name` is the variable that holds it.

    `model` is its name at the provider. Prices are US dollars per million tokens. `reasoning_tokens` is what the model
    may think on top of its reply.
    """

    id: str
    model: str
    url: str
    key_name: str
    context_tokens: int
    max_output_tokens: int
    timeout_s: float
    max_in_flight: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reasoning_tokens: int = 0
    input_price: float | None = None
    output_price: float | None = None
    dialect: Dialect = FULL
    limits: Limits = Limits()

    @property
    def shared_name(self) -> str:
        """What processes call the account behind this judge among themselves; it tells no URL and no key."""
        return sha256("\n".join((self.url, self.model, self.key_name)).encode()).hexdigest()[:32]

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the price of one call, None when prices are not known."""
        if self.input_price is None or self.output_price is None:
            return None
        return (input_tokens * self.input_price + output_tokens * self.output_price) / 1_000_000
