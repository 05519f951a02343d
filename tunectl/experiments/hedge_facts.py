"""What `tunectl-probe hedge` writes (tunectl.probe.hedge.raw/1), as types: counts and ticks, nothing that judges."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tunectl.cpulist import CpuSet, parse_shown
from tunectl.experiments.hedge_states import counts_of
from tunectl.experiments.pair_facts import CasesRun, Count, CpuFact, HostFacts, Values, read_run, uneven

SCHEMA = "tunectl.probe.hedge.raw/1"
SERVERS = ("a", "b")
Both = tuple[Count, Count]  # of server A and of server B
Quarters = tuple[Count, Count, Count, Count]


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """How often both servers were slow with one request; slow: above the P99 of a server's own service times."""

    served: Both = (0, 0)
    slow: Both = (0, 0)
    above_ticks: Both = (0, 0)
    pairs: Count = 0  # requests that both were done with
    first_slow: Both = (0, 0)  # of these, whose first copy went there, and was slow
    both_slow: Count = 0

    @property
    def expected(self) -> float:
        """How many would be slow with both, were the second as seldom slow as ever."""
        shares = [slow / served if served else 0.0 for slow, served in zip(self.slow, self.served, strict=True)]
        return self.first_slow[0] * shares[1] + self.first_slow[1] * shares[0]


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread used while it measured."""

    cpu_ns: Count
    ticks: Count
    preemptions: Count = 0
    page_faults: Count = 0


class RawCase(msgspec.Struct, frozen=True, kw_only=True):
    """One load, delay and stall."""

    load: Annotated[float, Meta(gt=0)]
    delay: str
    stall: Literal["none", "a", "both", "common"]
    service_ns: Annotated[int, Meta(gt=0)]
    cancel: bool
    budget: Annotated[float, Meta(ge=0, le=1)]  # 1: no limit
    shed_at: Count  # 0: no queue refuses
    seed: Count
    reason: str = ""  # why it was not measured
    warm_ups: Count = 0
    states: Values = []  # what became of the requests, of which the counts up to `unfinished` are made
    offered: Count = 0
    answered: Count = 0
    shed: Count = 0
    unanswered: Count = 0
    hedged: Count = 0
    won: Count = 0
    lost: Count = 0
    hedge_cancelled: Count = 0
    hedge_unfinished: Count = 0
    denied: Count = 0
    over_budget: Count = 0
    wasted: Count = 0
    cancelled_unstarted: Count = 0
    unfinished: Count = 0
    below_floor: Count = 0
    queue_max: Count = 0
    queue_sums: Quarters = (0, 0, 0, 0)  # what both queues held when a request came, in each quarter of the requests
    queue_arrivals: Quarters = (0, 0, 0, 0)
    measured_ticks: Count = 0
    busy_ticks: Count = 0
    free_ticks: Count = 0  # of both servers: they had nothing to do, and did not stall
    wasted_ticks: Count = 0
    fastest_ticks: Count | None = None  # from the sending of a copy to its answer
    latency: Values = []  # from due, of what was answered
    won_latency: Values = []
    late: Values = []  # from due until the first copy was sent
    hedged_after: Values = []  # the delay in force
    service: dict[str, Values] = {}
    shorter_of_pair: Values = []  # of the requests that both servers were done with
    together: Together = Together()
    threads: list[Thread] = []  # the client, A and B; none where it was simulated
    throttled_us: Count = 0  # the cgroups that hold the probe, by their cpu.max
    throttled: Count | None = None  # how often a server's core or package was, meanwhile; None where nobody counts

    @property
    def missed(self) -> int:
        """Refused, or without an answer."""
        return self.offered - self.answered

    @property
    def late_requests(self) -> int:
        """Those that were to have a second copy, whether they had it or not."""
        return self.hedged + self.denied + self.over_budget

    @property
    def free(self) -> float:
        """The share of their time in which the servers had nothing to do: all of it where nothing was measured."""
        return self.free_ticks / (2 * self.measured_ticks) if self.measured_ticks else 1.0

    @property
    def queues(self) -> tuple[float, float] | None:
        """What both queues held on average, in the first and in the last quarter; None where one had no request."""
        if not self.queue_arrivals[0] or not self.queue_arrivals[-1]:
            return None
        return self.queue_sums[0] / self.queue_arrivals[0], self.queue_sums[-1] / self.queue_arrivals[-1]


class HedgeFacts(HostFacts, frozen=True, kw_only=True):
    """What decides how much the figures of a run mean."""

    cpus: tuple[CpuFact, CpuFact, CpuFact]  # the client's, A's and B's


class RawHedge(CasesRun[RawCase], frozen=True, kw_only=True):
    """A whole run."""

    simulated: bool
    cpus: tuple[Count, ...]  # the client's, A's and B's; none where it was simulated
    facts: HedgeFacts | None

    def shares_core(self, one: int, other: int) -> bool:
        """Are these two of the three on hardware threads of one core?"""
        return self.facts is not None and self.cpus[one] in self._core(self.facts, other)

    @staticmethod
    def _core(facts: HedgeFacts, which: int) -> CpuSet:
        return parse_shown(facts.cpus[which].core_cpus)


def read_raw(document: dict[str, Any]) -> RawHedge:
    """The document as types, its counts made of states. TunectlError with the place of what is wrong."""
    cells = [cell | counts_of(cell["states"]) if "states" in cell else cell for cell in document.get("cells", ())]
    return read_run(document | {"cells": cells}, RawHedge, SCHEMA, _contradiction)


def _contradiction(case: RawCase) -> str:
    """What no type says: each request and each copy is accounted for once, and no answer came before it could."""
    if case.reason:
        return ""
    values = {name: getattr(case, name) for name in ("latency", "won_latency", "late", "hedged_after")}
    services = {f"service.{name}": case.service.get(name, []) for name in SERVERS}
    return uneven({**values, **services, "shorter_of_pair": case.shorter_of_pair}) or _counts(case) or _floor(case)


def _counts(case: RawCase) -> str:
    copies = case.offered - case.shed + case.hedged
    sums: list[tuple[str, int, tuple[int, ...]]] = [
        ("offered: answered, shed and unanswered", case.offered, (case.answered, case.shed, case.unanswered)),
        (
            "copies sent: answered, wasted, cancelled_unstarted and unfinished",
            copies,
            (case.answered, case.wasted, case.cancelled_unstarted, case.unfinished),
        ),
        (
            "hedged: won, lost, hedge_cancelled and hedge_unfinished",
            case.hedged,
            (case.won, case.lost, case.hedge_cancelled, case.hedge_unfinished),
        ),
        ("latency: its values", case.answered, _times(case.latency)),
        ("won_latency: its values", case.won, _times(case.won_latency)),
        ("late: its values", case.offered - case.shed, _times(case.late)),
        ("hedged_after: its values", case.hedged, _times(case.hedged_after)),
        ("shorter_of_pair: its values", case.together.pairs, _times(case.shorter_of_pair)),
    ]
    for name, served in zip(SERVERS, case.together.served, strict=True):
        sums.append((f"service.{name}: its values", served, _times(case.service.get(name, []))))
    for what, whole, parts in sums:
        if whole != sum(parts):
            return f"{what} are {sum(parts)}, and not {whole}"
    return ""


def _times(values: Values) -> tuple[int, ...]:
    return tuple(values[1::2])


def _floor(case: RawCase) -> str:
    """A hedge goes out no sooner than its delay, and no copy is answered sooner than the fastest one."""
    if case.below_floor:
        return f"below_floor: {case.below_floor} requests were answered by a hedge sooner than one can be"
    if case.won and case.won_latency[0] < case.hedged_after[0] + (case.fastest_ticks or 0):
        return "won_latency: begins below the least of hedged_after and the fastest reply"
    return ""
