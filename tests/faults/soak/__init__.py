"""A long run of mixed load under random faults: `python -m tests.faults.soak --minutes 30 --seed 7`."""
