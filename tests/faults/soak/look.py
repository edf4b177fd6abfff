"""What a soak measures as it goes: memory and descriptors of each process, connections and memory of Redis."""

import statistics
import time
from dataclasses import dataclass, field

import psutil
import redis

from tests.faults.soak.house import House

MEBI = 2**20
YOUNG_S = 20.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One look: resident MiB and open descriptors by process, `age_s` since its start; Redis's clients and MiB."""

    at: float
    rss: dict[str, float]
    descriptors: dict[str, int]
    age_s: dict[str, float]
    redis_clients: int
    redis_mib: float

    def __str__(self) -> str:
        each = " ".join(f"{name}={self.rss[name]:.0f}M/{self.descriptors[name]}fd" for name in self.rss)
        return f"{each} redis={self.redis_clients} clients/{self.redis_mib:.0f}M"


def take_sample(house: House) -> Sample | None:
    """Look once; None while Redis is away."""
    rss, descriptors, age_s = {}, {}, {}
    for name, process in house.processes.items():
        try:
            seen = psutil.Process(process.child.pid)
            rss[name], descriptors[name] = seen.memory_info().rss / MEBI, seen.num_fds()
            age_s[name] = time.time() - seen.create_time()
        except psutil.Error:
            continue
    try:
        with redis.Redis.from_url(house.server.url, socket_timeout=1) as client:
            info = client.info()
    except redis.RedisError:
        return None
    return Sample(time.time(), rss, descriptors, age_s, int(info["connected_clients"]), int(info["used_memory"]) / MEBI)


@dataclass(slots=True)
class Growth:
    """How a figure was in the first third of the time and in the last; flat when it grew by less than is allowed."""

    name: str
    first: float
    last: float
    allowed: float

    @property
    def flat(self) -> bool:
        """Whether it may be called flat."""
        return self.last - self.first <= self.allowed

    def __str__(self) -> str:
        verdict = "flat" if self.flat else "GROWS"
        return f"{self.name}: {self.first:.0f} in the first third, {self.last:.0f} in the last: {verdict}"


@dataclass(slots=True)
class Samples:
    """All looks of a soak; processes that were just started count once they are warm."""

    taken: list[Sample] = field(default_factory=list)

    def growth(self) -> list[Growth]:
        """Compare the first third with the last, by medians over all processes of a role."""
        third = len(self.taken) // 3
        first, last = self.taken[:third], self.taken[-third:] if third else []
        found = []
        for role in ("api", "worker"):
            for figure, label, share, floor in (("rss", "MiB", 0.15, 25), ("descriptors", "descriptors", 0.25, 20)):
                before, after = (_median(part, figure, role) for part in (first, last))
                allowed = max(before * share, floor)
                found.append(Growth(f"{role} {label}, median", before, after, allowed))
        before, after = (statistics.median([one.redis_clients for one in part] or [0]) for part in (first, last))
        return [*found, Growth("Redis clients, median", before, after, max(before * 0.25, 15))]


def _median(samples: list[Sample], figure: str, role: str) -> float:
    values = [
        value
        for sample in samples
        for name, value in getattr(sample, figure).items()
        if name.startswith(role) and sample.age_s.get(name, 0) > YOUNG_S
    ]
    return statistics.median(values or [0])
