"""What Assay talks about: runs, requests, verdicts, errors. Pure data and rules, no I/O and no clock."""
