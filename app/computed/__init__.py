"""Scorers that need no judge: what they are, how they run, and what they share."""
