"""Names of metrics and the shape of logs, each in one place."""
