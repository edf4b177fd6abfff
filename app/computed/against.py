"""What an output is compared with."""

from typing import Literal

from pydantic import Field

from app.computed.scorer import Inputs
from app.domain.request import Options


class ComparisonOptions(Options):
    """Options of the scorers that compare the output with another text."""

    against: Literal["groundTruth", "input"] = Field(
        "groundTruth", description="The text that the output is compared with"
    )


def needs_of(options: ComparisonOptions) -> tuple[str, ...]:
    """Return the inputs that a comparison needs."""
    return ("output", options.against)


def reference_of(inputs: Inputs, options: ComparisonOptions) -> str:
    """Return the text that the output is compared with."""
    return (inputs.input if options.against == "input" else inputs.ground_truth) or ""
