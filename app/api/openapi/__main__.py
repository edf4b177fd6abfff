"""`python -m app.api.openapi` writes the document to standard output."""

import sys

from app.api.openapi import document_json

sys.stdout.write(document_json())
