"""Assay: scores for language models' outputs that can be audited."""

__version__ = "0.1.0"
