"""Scorers that are data: definitions that callers write, and what makes them run like any other."""
