"""`hedge`, a second copy of each late request: what is asked for, which cases that is, and how each is measured."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from tunectl.errors import UsageError
from tunectl.experiments.ends import CLIENT_AND_SERVERS, CaseRun, EndsRequest, Placed, place_request
from tunectl.experiments.frame import Takes, check_duration, chosen, listed, within
from tunectl.experiments.hedge_cells import RawCase, explained_hedge, natural_share
from tunectl.host.counters import THROTTLES, rises
from tunectl.host.sysroot import Sysroot
from tunectl.host.thermal import Throttles, read_throttles
from tunectl.work import Tell

MOST_REQUESTS = 5_990_000  # of a case: the program keeps what became of each of them
MOST_SERVICE_NS = 100_000_000
SERVICE_NS, DURATION_S = 3000, 10.0  # where nothing else is asked for
_WARM_UPS_LEAST, _WARM_UPS_MOST = 100, 10_000  # of the native program (hedge/plan.c)
LOADS, DELAYS = "0.1,0.3,0.5,0.7,0.85", "0,p95"
NONE = "none"
STALLS = (NONE, "a", "both", "common")
LEAST_LOAD, MOST_LOAD, MOST_DELAY_NS = 0.001, 2.0, 1_000_000_000
_NS = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_CASE_S = 0.5  # beyond its schedule: the counter's rate, the plan
_LAST_SERVICES = 10  # for answers to the last requests
_SIMULATED_S = 1e-6  # what a simulated request takes, about


@dataclass(frozen=True)
class HedgeRequest(EndsRequest):
    """The options of `tunectl probe hedge`, lists as text; None for a limit that there is not."""

    options = ("duration_s", "simulate", "fifo", "intrude")
    service_ns: int = SERVICE_NS
    load: str = LOADS
    delay: str = DELAYS
    cancel: bool = True
    budget: float | None = None
    shed: int | None = None
    stall: str = "none"
    duration_s: float = DURATION_S
    seed: int = 1
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
        check_duration(self.duration_s)
        if self.budget is not None and not 0 <= self.budget <= 1:
            raise UsageError(f"--budget {self.budget:g}: second copies for each request, from 0 to 1")
        if self.simulate and (self.cpus or self.fifo or self.intrude):
            raise UsageError("--simulate: --cpus, --fifo and --intrude are of a measurement", "leave them out")


def plan(request: HedgeRequest) -> list[RawCase]:
    """The cases of a request: for each stall and load the one without second copies first. UsageError for no case."""
    request.check()
    loads = _loads(request)
    stalls = chosen("--stall", request.stall, STALLS)
    expected = f"none, p50 to p99.9, or ns up to {MOST_DELAY_NS}, like 0,p95"
    delays = [NONE, *(word for word in listed("--delay", request.delay, _delay, expected) if word != NONE)]
    budget = 1.0 if request.budget is None else request.budget
    policy = (request.service_ns, request.cancel, budget, request.shed or 0, request.seed)
    return [RawCase.of(load, delay, stall, *policy) for stall in stalls for load in loads for delay in delays]


def _loads(request: HedgeRequest) -> list[float]:
    expected = f"numbers from {LEAST_LOAD:g} to {MOST_LOAD:g}, like 0.1,0.5"
    found = listed("--load", request.load, lambda word: within(float(word), LEAST_LOAD, MOST_LOAD), expected)
    for load in found:
        count = request.requests(load)
        if not 1 <= count <= MOST_REQUESTS:
            what = f"--load {load:g} for --duration {request.duration_s:g} at --service-ns {request.service_ns}"
            raise UsageError(f"{what}: that is {count:,} requests", f"from 1 to {MOST_REQUESTS:,} in a case")
    return found


def _delay(word: str) -> str:
    """The same; ValueError where it is none."""
    is_ns = _NS.fullmatch(word) and int(word) <= MOST_DELAY_NS
    if word != NONE and not is_ns and not 0 < natural_share(word) <= 0.5:
        raise ValueError
    return word


def _takes(request: HedgeRequest, case: RawCase) -> Takes:
    if request.simulate:
        return Takes(0.0, _SIMULATED_S * request.requests(case.load))
    last_s = _LAST_SERVICES * request.service_ns / 1e9
    return Takes(request.warm_up_s(case.load), _CASE_S + request.duration_s + last_s)


def _measured(run: CaseRun[RawCase], case: RawCase) -> dict[str, Any]:
    """With how often the servers' cores and packages were throttled meanwhile; None where nobody counts."""
    before = _throttles(run.placed)
    measured = run.counted(case)
    after = _throttles(run.placed)
    counts = rises(before, after, THROTTLES)
    measured["cells"][0]["throttled"] = sum(counts.values()) if counts else None
    return measured


def _throttles(placed: Placed | None) -> Throttles:
    """Since boot; empty where nobody counts."""
    return read_throttles(Sysroot(), placed.ends[1:] if placed else ())


def run_hedge(request: HedgeRequest, on_progress: Tell) -> dict[str, Any]:
    """The tunectl.probe.hedge/1 document. UsageError for a wrong request; else as CaseRun.measure()."""
    cases, takes = plan(request), partial(_takes, request)
    placed = None if request.simulate else place_request(CLIENT_AND_SERVERS, request)
    run = CaseRun("hedge", request, placed, cases, takes, on_progress)
    return run.noted(explained_hedge(run.measure(partial(_measured, run))))
