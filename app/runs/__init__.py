"""Run semantics: accept, execute, follow, change. The API and the worker call these and nothing deeper."""
