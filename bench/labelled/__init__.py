"""Labelled texts through the engine: rows, judgements, statistics, tables and a picture (see bench/quality.py)."""
