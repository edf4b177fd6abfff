"""What a caller asks for."""

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, FiniteFloat, StringConstraints
from pydantic.fields import ComputedFieldInfo, FieldInfo
from pydantic_core import PydanticCustomError

from app.domain.messages import Message, Messages, calls_in, text_of
from app.domain.model import Model, NonBlankText, ShortText, Text
from app.domain.parts import ToolCall

RUN_ID_PATTERN = r"^[A-Za-z0-9_-]{8,64}$"
RunId = Annotated[str, StringConstraints(pattern=RUN_ID_PATTERN)]
MetadataKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
ModelId = Annotated[str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9._-]+/[\x21-\x7e]+$")]
MetadataValue = ShortText | bool | int | FiniteFloat | None
NOISY_INPUT = "noisyInput"
"""The key of metadata that holds an input of its own."""


class Mode(StrEnum):
    """Inline answers with the finished run; queued answers at once with 202."""

    INLINE = "inline"
    QUEUED = "queued"


class CacheMode(StrEnum):
    """Use what is cached, replace it, or leave the shared cache alone."""

    USE = "use"
    REFRESH = "refresh"
    OFF = "off"


class StorePolicy(StrEnum):
    """Keep all; keep no texts and prompts; keep nothing after the answer."""

    FULL = "full"
    RESULT = "result"
    NONE = "none"


class Priority(StrEnum):
    """Order in the queue."""

    HIGH = "high"
    NORMAL = "normal"
    BULK = "bulk"


class Strategy(StrEnum):
    """How the judge is asked; the result has the same shape."""

    THREE_STEP = "three_step"
    SINGLE_CALL = "single_call"
    LABELS = "labels"


class Scoring(StrEnum):
    """What the formula counts: the judge's labels, or how likely it made each label."""

    HARD = "hard"
    EXPECTED = "expected"


class ExampleSet(StrEnum):
    """Which worked examples stand in the prompts about verdicts."""

    NONE = "none"
    DEFAULT = "default"


def _refuse_empty(content: str | list[Message]) -> str | list[Message]:
    if not text_of(content).strip() and not calls_in(content):
        raise PydanticCustomError("blank", "Send at least one message with a text that is not blank, or a tool call")
    return content


class Sampling(Model):
    """Score only a share of the traffic; the same key always gives the same answer."""

    rate: Annotated[FiniteFloat, Field(ge=0, le=1)]
    key: Annotated[ShortText, StringConstraints(min_length=1)]


class ScoreRequest(Model):
    """Score one text with one scorer."""

    output: Annotated[NonBlankText | Messages, AfterValidator(_refuse_empty)]
    input: Text | Messages | None = None
    context: Annotated[list[Text], Field(max_length=1_000)] | None = None
    ground_truth: Text | None = None
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    model: ModelId | None = None
    models: Annotated[list[ModelId], Field(min_length=2, max_length=5)] | None = None
    mode: Mode = Mode.INLINE
    run_id: RunId | None = None
    cache: CacheMode = CacheMode.USE
    timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    threshold: FiniteFloat | None = None
    priority: Priority = Priority.NORMAL
    sampling: Sampling | None = None
    store: StorePolicy = StorePolicy.FULL

    @property
    def noisy_input(self) -> str | None:
        """The input with noise that the output answers, when `metadata` holds it: it is a text like the others."""
        value = self.metadata.get(NOISY_INPUT)
        return value if isinstance(value, str) else None

    @property
    def kept_metadata(self) -> dict[str, MetadataValue]:
        """The metadata as the run shows it: without a text where texts are not kept."""
        if self.store is StorePolicy.FULL:
            return self.metadata
        return {key: value for key, value in self.metadata.items() if key != NOISY_INPUT}


class ScorerSelection(Model):
    """One scorer of a multi-scorer request, with its own options and threshold."""

    id: Annotated[str, StringConstraints(max_length=64)]
    options: dict[str, Any] | None = None
    threshold: FiniteFloat | None = None


class MultiScoreRequest(ScoreRequest):
    """Score one text with several scorers; `options` and `threshold` are defaults for all of them."""

    scorers: Annotated[
        list[Annotated[str, StringConstraints(max_length=64)] | ScorerSelection], Field(min_length=1, max_length=16)
    ]


def _refuse_unknown_language(tag: str) -> str:
    # Loading the registry of languages takes longer than the rest of the service's start and is seldom needed.
    import langcodes  # noqa: PLC0415

    if "_" in tag or not langcodes.tag_is_valid(tag):
        raise PydanticCustomError("language", "Send a BCP 47 language tag, such as en, fr-CA or zh-Hant")
    return tag


LanguageTag = Annotated[str, StringConstraints(max_length=35), AfterValidator(_refuse_unknown_language)]


def _title(name: str, field: FieldInfo | ComputedFieldInfo) -> str:
    words = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda capital: f" {capital[0].lower()}", field.alias or name).replace(
        "_", " "
    )
    return words[:1].upper() + words[1:]


class Options(Model):
    """What every scorer understands; a scorer's own options extend this."""

    # Forms are drawn from this schema.
    model_config = ConfigDict(field_title_generator=_title)

    scale: Annotated[FiniteFloat, Field(gt=0, le=1_000_000)] = Field(
        default=1.0, description="The score lies between 0 and this"
    )
    include_reason: bool = Field(default=True, description="Whether the run tells why its score is what it is")
    language: LanguageTag | None = Field(
        default=None, description="BCP 47 tag of the reason's language; default: the scored text's own"
    )
    strategy: Strategy = Field(
        default=Strategy.THREE_STEP,
        description="How the judge is asked; nothing is asked by scorers that need no judge",
    )
    samples: Annotated[int, Field(ge=1, le=11)] = Field(
        1, description="How often each judge decides on every item; the majority counts"
    )
    scoring: Scoring = Field(
        default=Scoring.HARD,
        description="What the formula counts: labels as the judge gave them, or by their probabilities",
    )
    examples: ExampleSet | None = Field(
        default=None, description="Worked examples in the prompt; default: the scorer's own with labels, else none"
    )


class RunRequest(Model):
    """A request as it was accepted: one scorer, options checked, the judge chosen, the deadline fixed.

    `model` is null for scorers that need no judge; `models` are those of a panel, `model` first. `definition` is the
    JSON of a scorer that is data, so that a run never depends on what becomes of its scorer; null for scorers that are
    code.
    `caller` tells the queue whose run it is, and nothing else; no answer shows it. `group` is the same in all runs of
    one request, and empty where there is one: what belongs to no scorer is asked once for them, even with `cache: off`.
    """

    scorer_id: str
    definition: str | None = None
    output: str | list[Message]
    input: str | list[Message] | None = None
    context: list[str] | None = None
    ground_truth: str | None = None
    noisy_input: str | None = None
    options: dict[str, Any]
    model: str | None = None
    models: list[str] | None = None
    cache: CacheMode = CacheMode.USE
    threshold: float | None = None
    priority: Priority = Priority.NORMAL
    store: StorePolicy = StorePolicy.FULL
    timeout_ms: int
    caller: str = ""
    group: str = ""

    @property
    def text(self) -> str:
        """The text that is scored; spans are code point offsets into it."""
        return text_of(self.output)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls in the output."""
        return calls_in(self.output)

    @property
    def question(self) -> str | None:
        """The text that the output answers, when there is one."""
        return None if self.input is None else text_of(self.input)
