"""The `assay` command: every sub-command lives in the module of its name."""
