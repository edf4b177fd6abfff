"""Token probabilities of a reply, in the OpenAI API's form."""

import math
import re
from collections.abc import Mapping
from typing import Any


def content(text: str, shares: Mapping[str, Mapping[str, float]], most: int) -> list[dict[str, Any]]:
    """Return the tokens of text; `shares` are the probabilities in the place of each label that stands in quotes.

    Such a label is one token, with at most so many alternatives; all else is cut into small pieces, which are certain.
    """
    tokens = []
    for label, piece in re.findall(rf'(?<=")({"|".join(shares) or "(?!)"})(?=")|(\w{{1,4}}|\W)', text, re.DOTALL):
        probabilities = shares[label] if label else {piece: 1.0}
        ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])[:most]
        written = label or piece
        likeliest = [_token(other, share) for other, share in ranked]
        tokens.append({**_token(written, probabilities.get(written, 0.0)), "top_logprobs": likeliest})
    return tokens


def _token(text: str, probability: float) -> dict[str, Any]:
    logprob = math.log(probability) if probability else -9999.0
    return {"token": text, "bytes": list(text.encode()), "logprob": logprob}
