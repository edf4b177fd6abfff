"""A custom scorer as its author writes it: texts, schemas and a formula, and nothing that runs."""

from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, FiniteFloat, StringConstraints

from app.domain.model import Model, Text, refuse_blank, refuse_nul
from app.domain.request import MetadataKey, MetadataValue
from app.domain.run import Direction

SCORER_ID_PATTERN = r"^[a-z0-9][a-z0-9-]{1,62}$"
ScorerId = Annotated[str, StringConstraints(pattern=SCORER_ID_PATTERN)]
Version = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
Description = Annotated[
    str, StringConstraints(max_length=1_000), AfterValidator(refuse_nul), AfterValidator(refuse_blank)
]
Instructions = Annotated[
    str, StringConstraints(max_length=10_000), AfterValidator(refuse_nul), AfterValidator(refuse_blank)
]
Formula = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(refuse_nul), AfterValidator(refuse_blank)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}$")]
JsonSchema = dict[str, Any]

Input = Literal["output", "input", "context", "groundTruth"]


class BandDefinition(Model):
    """A named part of the 0..1 range, both ends included."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(refuse_nul)]
    low: Annotated[FiniteFloat, Field(ge=0, le=1)]
    high: Annotated[FiniteFloat, Field(ge=0, le=1)]


class PreprocessDefinition(Model):
    """What is asked first: either an object by `schema`, or with `select` the numbers of the segments that matter.

    `select` is the name under which the step's result lists them.
    """

    instructions: Instructions
    reply_schema: JsonSchema | None = Field(default=None, alias="schema")
    select: Name | None = None


class AnalyzeDefinition(Model):
    """What is asked then: an object by `schema`, or with `forEach` one such object for every unit.

    The units are the output's `segments`, or the `items` that preprocess found: the selected segments, or the array in
    its result.
    """

    instructions: Instructions
    reply_schema: JsonSchema = Field(alias="schema")
    for_each: Literal["segments", "items"] | None = None


class ReasonDefinition(Model):
    """How the judge writes the score's reason."""

    instructions: Instructions


class Example(Model):
    """A request and the judge's replies to it, on which the definition is tried without a judge."""

    output: Annotated[Text, AfterValidator(refuse_blank)]
    input: Text | None = None
    context: Annotated[list[Text], Field(max_length=1_000)] | None = None
    ground_truth: Text | None = None
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    preprocess_step_result: dict[str, Any] | None = Field(
        default=None, description="The judge's reply to preprocess: an object by its schema, or `{select: [numbers]}`"
    )
    analyze_step_result: dict[str, Any] = Field(
        description="The judge's reply to analyze: an object by its schema; with forEach `{verdicts: [{n, ...}]}`"
    )


class ScorerDefinition(Model):
    """A custom scorer; docs/custom-scorers.md explains every field."""

    id: ScorerId
    version: Version
    description: Description
    direction: Direction
    needs: Annotated[list[Input], Field(min_length=1, max_length=4)] = Field(default=["output"])
    bands: Annotated[list[BandDefinition], Field(min_length=1, max_length=20)] | None = None
    options: JsonSchema | None = Field(default=None, description="JSON schema of the scorer's own options")
    preprocess: PreprocessDefinition | None = None
    analyze: AnalyzeDefinition
    generate_reason: ReasonDefinition | None = None
    score: Formula = Field(description="CEL expression over the step results: a number from 0 to 1, or null")
    example: Example | None = None

    @property
    def text(self) -> str:
        """The JSON that is kept of it; equal definitions have equal texts."""
        return self.model_dump_json(exclude_defaults=True)

    @property
    def digest(self) -> str:
        """The SHA-256 of its text."""
        return sha256(self.text.encode()).hexdigest()
