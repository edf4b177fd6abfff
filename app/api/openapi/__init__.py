"""`openapi/openapi.json`: built from the code, so that it can't say anything else."""

import json
from functools import cache
from typing import Any

from app.api.openapi.document import build_document
from app.scorers import load_scorers


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document of this version."""
    return build_document(load_scorers())


@cache
def document_json() -> str:
    """Return the document as it is committed and served."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"
