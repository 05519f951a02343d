"""What `hedge` is asked for, and the words of the native program's command line that are the same for each case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tunectl.errors import UsageError

LONGEST_S = 86_400
MOST_REQUESTS = 5_990_000  # of a case: the program keeps what became of each of them
MOST_SERVICE_NS = 100_000_000
SERVICE_NS, DURATION_S = 3000, 10.0  # where nothing else is asked for
_WARM_UPS_LEAST, _WARM_UPS_MOST = 100, 10_000  # of the native program (hedge/plan.c)
LOADS, DELAYS = "0.1,0.3,0.5,0.7,0.85", "0,p95"


@dataclass(frozen=True)
class HedgeRequest:
    """The options of `tunectl probe hedge`, lists as text; None for a limit that there is not."""

    cpus: str | None = None
    among: str | None = None
    service_ns: int = SERVICE_NS
    load: str = LOADS
    delay: str = DELAYS
    cancel: bool = True
    budget: float | None = None
    shed: int | None = None
    stall: str = "none"
    duration_s: float = DURATION_S
    seed: int = 1
    fifo: int | None = None
    intrude: bool = False
    simulate: bool = False

    def requests(self, load: float) -> int:
        """How many come in a case of this load: each takes its service time on one of two servers."""
        return round(self.duration_s * 1e9 * 2 * load / self.service_ns)

    def warm_up_s(self, load: float) -> float:
        """Half of the requests, but neither too few nor too many, as the program has it."""
        warm_ups = min(max(self.requests(load) // 2, _WARM_UPS_LEAST), _WARM_UPS_MOST)
        return warm_ups * self.service_ns / (2 * load) / 1e9

    def check(self) -> None:
        """UsageError for a duration, or a budget, that is none."""
        if not 0 < self.duration_s <= LONGEST_S:  # nan is in no range
            raise UsageError(f"--duration {self.duration_s:g}: seconds, above 0 and at most a day")
        if self.budget is not None and not 0 <= self.budget <= 1:
            raise UsageError(f"--budget {self.budget:g}: second copies for each request, from 0 to 1")
        if self.simulate and (self.cpus or self.fifo or self.intrude):
            raise UsageError("--simulate: --cpus, --fifo and --intrude are of a measurement", "leave them out")

    def words(self) -> Iterator[str]:
        """The program's arguments; not those of a case."""
        yield from ("--duration", f"{self.duration_s:.6f}")
        if self.simulate:
            yield "--simulate"
        if self.fifo is not None:
            yield from ("--fifo", str(self.fifo))
        if self.intrude:
            yield "--intrude"
