"""What goes wrong, and when: the same seed gives the same faults at the same moments."""

import random
from dataclasses import dataclass

QUIET_START_S = 8.0
QUIET_END_S = 10.0
GAP_S = 9.0
LEAST_GAP_S = 2.0

# Weight, and how long it lasts (least and most seconds; a kill lasts no time).
KINDS: dict[str, tuple[int, float, float]] = {
    "worker killed": (8, 0, 0),
    "worker asked to stop": (4, 0, 0),
    "worker frozen": (4, 3, 25),
    "API killed": (3, 0, 0),
    "API asked to stop": (2, 0, 0),
    "Redis killed": (2, 0, 0),
    "Redis away": (2, 2, 10),
    "judge answers 429": (3, 3, 12),
    "judge answers 500": (3, 3, 12),
    "judge answers 529": (2, 3, 12),
    "judge hangs": (3, 3, 12),
    "judge drops calls": (3, 3, 12),
    "judge down": (3, 3, 20),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """`number` chooses among the processes of the kind; `at_s` counts from the start of the load."""

    at_s: float
    kind: str
    lasts_s: float
    number: int

    def __str__(self) -> str:
        lasts = f" for {self.lasts_s:.0f} s" if self.lasts_s else ""
        which = f" {self.number}" if self.kind.startswith(("worker", "API")) else ""
        return f"{self.at_s:7.1f}  {self.kind}{which}{lasts}"


def make_schedule(seed: int, seconds: float, *, workers: int, apis: int) -> list[Fault]:
    """Return the faults of a run of so many seconds, in order; faults of the judge or of Redis do not overlap."""
    chance = random.Random(seed)
    faults: list[Fault] = []
    busy_until = {"judge": 0.0, "Redis": 0.0}
    moment = QUIET_START_S
    while True:
        moment += max(LEAST_GAP_S, chance.expovariate(1 / GAP_S))
        kind = chance.choices(list(KINDS), [weight for weight, _, _ in KINDS.values()])[0]
        _, least, most = KINDS[kind]
        lasts = chance.uniform(least, most)
        number = chance.randrange(workers if kind.startswith("worker") else apis)
        if moment + lasts > seconds - QUIET_END_S:
            return faults
        alone = kind.split()[0]
        if alone in busy_until:
            if moment < busy_until[alone]:
                continue
            busy_until[alone] = moment + lasts + LEAST_GAP_S
        faults.append(Fault(moment, kind, lasts, number))
