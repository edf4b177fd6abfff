"""Run semantics: accept, execute, follow, cancel, retry, delete. The API and the worker call these and nothing deeper."""
