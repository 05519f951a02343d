"""What `tunectl-probe hedge` counted, as types; which cases are void, and the cells and warnings. Pure."""

import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tunectl.cpulist import named_cpus
from tunectl.experiments import pair
from tunectl.experiments.ends import CLIENT_AND_SERVERS
from tunectl.experiments.frame import Case, CasesRun, Count, CpuFact, Experiment, HostFacts, Judged, Lists, Values
from tunectl.experiments.hedge_states import counts_of
from tunectl.experiments.tick_figures import FEWEST, Figures, ratio
from tunectl.probe.phase import evidence
from tunectl.probe.runner import given
from tunectl.shapes import HedgeCase, Maybe, about, having
from tunectl.wording import nanoseconds, percent, plural

SERVERS = ("a", "b")
_PERCENTILE = re.compile(r"p([0-9]{2}(?:\.[0-9]{1,2})?)", re.ASCII)
LATE_MOST = 0.1  # of the service time, by which one request in a hundred may be sent late
_ROLES = CLIENT_AND_SERVERS.names
GROWN = 4  # times what the queues held in the first quarter: they have no mean
UNANSWERED_MOST = 0.01
FREE_LEAST = 0.01  # of the time that both servers have: what is left works off no burst
DEPENDENT = 2.0  # times as often as chance has it, and then with little doubt
_DOUBT = 1e-4
_SERVICE_OFF = 1.1  # times the service time that was asked for
_MISSES = (("50", 0.5), ("90", 0.1), ("95", 0.05), ("99", 0.01), ("99.9", 0.001), ("99.99", 0.0001))
_TOLD = (0.01, 0.001, 0.0001)
_COUNTED = (
    *("warm_ups", "offered", "answered", "shed", "unanswered"),  # of requests
    *("hedged", "won", "lost", "hedge_cancelled", "hedge_unfinished", "denied", "over_budget"),  # of second copies
    *("wasted", "cancelled_unstarted", "unfinished", "queue_max"),  # of all copies
)
_LEAST_EXPECTED = 5.0  # both slow, by chance: a ratio to less says nothing


Both = tuple[Count, Count]  # of server A and of server B
Quarters = tuple[Count, Count, Count, Count]


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """How often both servers were slow with one request; slow: above the P99 of a server's own service times."""

    served: Annotated[Both, about("Copies that A and B were done with.")] = (0, 0)
    slow: Annotated[Both, about("Of these, above above_ticks.")] = (0, 0)
    above_ticks: Annotated[Both, about("The P99 of each server's own service times.")] = (0, 0)
    pairs: Annotated[Count, about("Requests that both were done with.")] = 0
    first_slow: Annotated[Both, about("Of these, whose first copy went there, and was slow.")] = (0, 0)
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


class RawCase(Case, msgspec.Struct, frozen=True, kw_only=True):
    """One load, delay and stall."""

    shape = HedgeCase
    asked = ("load", "delay", "stall", "service_ns", "cancel", "budget", "shed_at", "seed")
    load: Annotated[
        float, Meta(gt=0), about("Arrivals x service / 2: of each server, without second copies and stalls.")
    ]
    delay: Annotated[str, about("When a request without an answer gets a second copy: none, ns, or pNN.")]
    stall: Annotated[
        Literal["none", "a", "both", "common"],
        about("Which servers stall for 300 us, 1 % of the time; common: both at the same instants."),
    ]
    service_ns: Annotated[int, Meta(gt=0), about("Work of a request.")]
    cancel: Annotated[bool, about("The other copy is cancelled once the answer is there, where it has not begun.")]
    budget: Annotated[float, Meta(ge=0, le=1), about("Second copies for each request; 1: no limit.")]
    shed_at: Annotated[Count, about("0: no queue refuses.")]
    seed: Annotated[Count, about("Of arrivals, stalls and, simulated, service times.")]
    warm_ups: Annotated[Count, about("Requests before the measured time; they are in no other count.")] = 0
    states: Annotated[
        Values,
        Maybe,
        about("What became of the requests, of which the counts from `offered` to `unfinished` are made."),
    ] = []
    offered: Annotated[
        Count, about("Requests whose due time came in the measured time: answered + shed + unanswered.")
    ] = 0
    answered: Count = 0
    shed: Annotated[Count, about("Refused by a full queue: they count as missed.")] = 0
    unanswered: Annotated[Count, about("Taken, and without an answer when the run ended.")] = 0
    hedged: Annotated[
        Count, about("Second copies that were sent: won + lost + hedge_cancelled + hedge_unfinished.")
    ] = 0
    won: Annotated[Count, about("The second copy's answer came first.")] = 0
    lost: Annotated[Count, about("The second copy was done with, and the first had answered.")] = 0
    hedge_cancelled: Annotated[Count, about("Second copies that were cancelled before they were begun.")] = 0
    hedge_unfinished: Annotated[Count, about("Second copies that were neither by the end.")] = 0
    denied: Annotated[Count, about("Second copies that were due, and met a full queue.")] = 0
    over_budget: Annotated[Count, about("Second copies that were due, and the budget had no token left.")] = 0
    wasted: Annotated[Count, about("Copies that were done with when their request had its answer.")] = 0
    cancelled_unstarted: Annotated[
        Count, about("Copies, first or second, that were cancelled before they were begun.")
    ] = 0
    unfinished: Annotated[Count, about("Copies, first or second, that were not done with by the end.")] = 0
    below_floor: Annotated[Count, about("Answers by a second copy sooner than one can be: there is none.")] = 0
    queue_max: Annotated[Count, about("The most copies that one server had, the one in work among them.")] = 0
    queue_sums: Annotated[
        Quarters, about("In each quarter of the requests: what both queues held when one came, summed.")
    ] = (0, 0, 0, 0)
    queue_arrivals: Annotated[Quarters, about("And how many came.")] = (0, 0, 0, 0)
    measured_ticks: Annotated[
        Count, about("From when the first counted request was due until the last was, or the end.")
    ] = 0
    busy_ticks: Annotated[Count, about("Work of both servers that came back in that time.")] = 0
    free_ticks: Annotated[Count, about("What both had nothing to do in; a stall is none of it.")] = 0
    wasted_ticks: Annotated[Count, about("Work on wasted copies.")] = 0
    fastest_ticks: Annotated[Count | None, about("The shortest time from the sending of a copy to its answer.")] = None
    latency: Annotated[Values, about("From due to the first answer.")] = []
    won_latency: Annotated[Values, about("The same of those that a second copy won.")] = []
    late: Annotated[Values, about("From due until the first copy was sent.")] = []
    hedged_after: Annotated[Values, about("The delay in force, of each second copy.")] = []
    service: Annotated[
        dict[str, Values],
        having(*SERVERS),
        about("Service times: from when the server was last seen ready until it was done."),
    ] = {}
    shorter_of_pair: Annotated[
        Values, about("Of the requests that both servers were done with, the shorter service time.")
    ] = []
    together: Together = Together()
    threads: Annotated[list[Thread], about("The client, A and B; empty where it was simulated.")] = []
    throttled: Annotated[
        Count | None, Maybe, about("How often a server's core or package was; null where nobody counts.")
    ] = None

    def words(self) -> list[str]:
        """The program's arguments that say which case it is."""
        of_requests = given(load=self.load, delay=self.delay, stall=self.stall, service_ns=self.service_ns)
        policy = given(seed=self.seed, budget=self.budget, shed=self.shed_at, no_cancel=not self.cancel)
        return [*of_requests, *policy]

    @property
    def missed(self) -> int:
        """Refused, or without an answer."""
        return self.offered - self.answered

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

    cpus: Annotated[tuple[CpuFact, CpuFact, CpuFact], about("The client's, A's and B's.")]


class RawHedge(CasesRun[RawCase], frozen=True, kw_only=True):
    """What `tunectl-probe hedge` counted, in ticks of its counter; docs/probe-hedge.md has the definitions."""

    simulated: bool
    cpus: Annotated[tuple[Count, ...], about("The client's, A's and B's; empty where it was simulated.")]
    facts: Annotated[HedgeFacts | None, about("Null where it was simulated.")]

    def shares_core(self, one: int, other: int) -> bool:
        """Are these two of the three on hardware threads of one core?"""
        return self.facts is not None and pair.shares_core(self.cpus, self.facts.cpus, one, other)


def _lists(case: RawCase) -> Lists:
    service = {f"service.{name}": case.service.get(name, []) for name in SERVERS}
    return {
        "latency": (case.latency, case.answered),
        "won_latency": (case.won_latency, case.won),
        "late": (case.late, case.offered - case.shed),
        "hedged_after": (case.hedged_after, case.hedged),
        "shorter_of_pair": (case.shorter_of_pair, case.together.pairs),
        **{name: (values, n) for (name, values), n in zip(service.items(), case.together.served, strict=True)},
    }


def _contradiction(case: RawCase) -> str:
    """Each request and each copy is accounted for once, and no answer came before it could.

    A hedge goes out no sooner than its delay, and no copy is answered sooner than the fastest one.
    """
    copies = case.offered - case.shed + case.hedged
    done_with = case.answered + case.wasted + case.cancelled_unstarted + case.unfinished
    seconds = case.won + case.lost + case.hedge_cancelled + case.hedge_unfinished
    for what, whole, parts in (
        ("offered: answered, shed and unanswered", case.offered, case.answered + case.shed + case.unanswered),
        ("copies sent: answered, wasted, cancelled_unstarted and unfinished", copies, done_with),
        ("hedged: won, lost, hedge_cancelled and hedge_unfinished", case.hedged, seconds),
    ):
        if whole != parts:
            return f"{what} are {parts}, and not {whole}"
    if case.below_floor:
        return f"below_floor: {case.below_floor} requests were answered by a hedge sooner than one can be"
    if case.won and case.won_latency[0] < case.hedged_after[0] + (case.fastest_ticks or 0):
        return "won_latency: begins below the least of hedged_after and the fastest reply"
    return ""


def why_void(case: RawCase, run: RawHedge) -> str:
    """Why the times of a measured case are no result; "" where they are one."""
    for cpu, thread in zip(run.cpus, case.threads, strict=False):
        if reason := pair.why_no_spinner(pair.cpu_share(thread.cpu_ns, thread.ticks, run.clock.hz), cpu):
            return reason
    late = Figures(case.late, run.clock.hz)
    late_ns = late.at("99") * 1e9 / run.clock.hz if late.n else 0.0
    if late_ns <= LATE_MOST * case.service_ns:
        return ""
    return (
        f"void: the client sent one request in a hundred {nanoseconds(late_ns)} late or later (it may be "
        f"{nanoseconds(LATE_MOST * case.service_ns)}, a tenth of the service time): the load was not what was asked for"
    )


def run_warnings(run: RawHedge) -> Iterator[str]:
    """About the whole run."""
    yield from pair.ended_early(run)
    if run.facts is None:
        return
    cores = [
        f"the client and {_ROLES[which]} (CPUs {run.cpus[0]} and {run.cpus[which]}) share a physical core"
        for which in (1, 2)
        if run.shares_core(0, which)
    ]
    if run.shares_core(1, 2):
        servers = f"both servers (CPUs {run.cpus[1]} and {run.cpus[2]}) are hardware threads of one"
        cores.insert(0, f"no hedge helps against what slows a core: {servers}")
    yield from pair.placement(CLIENT_AND_SERVERS, run, run.facts, cores)
    yield from pair.real_time_limits(run)
    yield from pair.counter(run)
    yield from pair.host(run, run.facts, "the hypervisor may stop any of the three CPUs unseen, or all of them at once")


def natural_share(delay: str) -> float:
    """Of the requests, the share that is late by a delay that follows a percentile: 0.05 for p95.

    nan for any other delay: it is known once it was measured.
    """
    match = _PERCENTILE.fullmatch(delay)
    percent = float(match[1]) if match else math.nan
    return round(1 - percent / 100, 6) if 50 <= percent <= 99.9 else math.nan


def case_warnings(case: RawCase, run: RawHedge) -> Iterator[str]:
    """About one case that was measured."""
    yield from _missed(case)
    if reasons := why_collapsed(case):
        yield f"collapsed: {', and '.join(reasons)}"
    elif case.free < FREE_LEAST:  # by the requests alone, or by what a limited queue admits
        what = "what they cannot do is refused" if case.shed_at else "the queues do not recover from what fills them"
        yield f"saturated: the servers were free for {percent(100 * case.free)} of the time; {what}"
    yield from _starved(case)
    if is_dependent(case):
        yield (
            f"no hedge helps here: both servers were slow with the same request {case.together.both_slow} times, and "
            f"by chance it would have been {case.together.expected:.2g}: {_why_together(case, run)}"
        )
    if not run.simulated:
        yield from _service(case, run.clock.hz)
    for role, thread in zip(_ROLES, case.threads, strict=False):
        if thread.page_faults:
            yield f"the {role} took {thread.page_faults} page faults"
        yield from pair.preempted(role, thread.preemptions)


def _missed(case: RawCase) -> Iterator[str]:
    """What was refused or has no answer is longer than all others; whatever is decided by it has no value."""
    if not case.missed:
        return
    share = case.missed / case.offered
    lost = [f"P{name}" for name, beyond in _MISSES if share > beyond]
    said = next((f"more than {100 * beyond:g} % missed: " for beyond in _TOLD if share > beyond), "")
    yield (
        f"{said}{case.shed} of {case.offered} requests were refused and {case.unanswered} had no answer "
        f"({percent(100 * share)}), so {', '.join([*lost, 'the mean'])} and the longest have no value"
    )


def why_collapsed(case: RawCase) -> list[str]:
    """Why requests come faster than they are done with; nothing where they do not.

    The queues hold more than four times as many in the last quarter as in the first, and more than one; or more than
    1 % of the requests have no answer; or second copies take all the time that the servers have left: a delay that
    follows the queues hedges just as much as the servers can bear. The queues then stand still at their worst, soon
    after the start, and neither grow nor leave many without an answer. A queue that refuses cannot be long.
    """
    first, last = case.queues or (0.0, 0.0)
    reasons = []
    if last > GROWN * first and last > 1:
        held = f"{first:.3g} requests on average in the first quarter and {last:.3g} in the last"
        reasons.append(f"the queues held {held}")
    if case.unanswered > UNANSWERED_MOST * case.offered:
        reasons.append(f"{percent(100 * case.unanswered / case.offered)} of the requests had no answer")
    if not reasons and case.hedged and not case.shed_at and case.free < FREE_LEAST:
        reasons.append(
            f"second copies, of {percent(100 * case.hedged / case.offered)} of the requests, fill the servers, "
            f"which were free for {percent(100 * case.free)} of the time: the queues stand still at their worst, and "
            "no burst is worked off"
        )
    return reasons


def _starved(case: RawCase) -> Iterator[str]:
    """A budget below the share of late requests decides by itself what is hedged."""
    late = case.hedged + case.denied + case.over_budget  # that were to have a second copy
    admitted = case.offered - case.shed
    if case.over_budget and late > case.budget * admitted:
        natural = natural_share(case.delay)
        by_nature = f"{natural:.3g} by the delay itself, " if not math.isnan(natural) else ""
        yield (
            f"the budget of {case.budget:g} starves hedging: it is below the natural share of late requests "
            f"({by_nature}{late / admitted:.3g} here); {case.over_budget} of {late} had no second copy"
        )
    if case.denied:
        yield f"{case.denied} second copies were denied: the other queue was full, too"


def is_dependent(case: RawCase) -> bool:
    """Are both servers slow with one request more often than chance has it?"""
    together = case.together
    first_slow = sum(together.first_slow)
    if together.both_slow <= DEPENDENT * together.expected or not first_slow:
        return False
    return evidence(together.both_slow, first_slow, together.expected / first_slow) > -math.log(_DOUBT)


def _why_together(case: RawCase, run: RawHedge) -> str:
    """What this run knows of the reason."""
    reasons = []
    if case.stall == "common":
        reasons.append("they stall at the same instants, as was asked for")
    if run.shares_core(1, 2):
        reasons.append("they share a core")
    if case.throttled:
        reasons.append(f"their cores or their package were throttled {plural(case.throttled, 'time')}")
    if not run.simulated and run.machine.is_virtual:
        reasons.append("a hypervisor may have stopped both")
    if reasons:
        return ", and ".join(reasons)
    if run.simulated:
        return "it is not known why"
    return (
        "something stops both at once, an SMI or a throttled package; `tunectl probe jitter --attribute` on "
        f"{named_cpus(run.cpus[1:])} shows simultaneous stops"
    )


def _service(case: RawCase, hz: float) -> Iterator[str]:
    if case.throttled:
        yield f"the servers' cores or their package were throttled {plural(case.throttled, 'time')} meanwhile"
    for name in SERVERS:
        service = Figures(case.service.get(name, []), hz)
        median_ns = service.at("50") * 1e9 / hz if service.n else 0.0
        if median_ns > _SERVICE_OFF * case.service_ns:
            yield (
                f"server {name.upper()} took {nanoseconds(median_ns)} for work that was calibrated to "
                f"{nanoseconds(case.service_ns)}: its core runs slower than before, or shares its units"
            )


def _counted(run: RawHedge, judged: Judged) -> dict[str, Any]:
    case, hz, has = judged.case, run.clock.hz, judged.has_figures
    latency = judged.figures(case.latency, hz, case.missed)
    delays = judged.figures(case.hedged_after, hz)
    return {
        "budget": case.budget if case.budget < 1 else None,
        "shed_at": case.shed_at or None,
        "n": latency.n,
        "floor_ns": latency.ns(delays.least + (case.fastest_ticks or 0)) if delays.n else None,
        "delay_ns": delays.ns(delays.at("50")) if delays.n else None,
        **latency.summary_ns(FEWEST),
        "single_ns": {name: judged.figures(case.service.get(name, ()), hz).spread_ns(FEWEST) for name in SERVERS},
        "late_ns": judged.figures(case.late, hz).spread_ns(FEWEST),
        "wasted_ns": latency.ns(case.wasted_ticks) if has else None,
        "utilisation": ratio(case.busy_ticks, 2 * case.measured_ticks) if has else None,
        "joint_ratio": joint_ratio(case) if has else None,
        "collapsed": bool(why_collapsed(case)) if has else None,
        "histogram": latency.histogram_ns(),
        **{name: getattr(case, name) for name in _COUNTED},
        "throttled": case.throttled,
    }


def joint_ratio(case: RawCase) -> float | None:
    """P(both slow) / (P(A slow) x P(B slow)); 1 for servers that are slow by themselves.

    None where chance would have it less than five times: then too few requests went to both.
    """
    together = case.together
    return ratio(together.both_slow, together.expected) if together.expected >= _LEAST_EXPECTED else None


def _with_counts(document: dict[str, Any]) -> dict[str, Any]:
    cells = [cell | counts_of(cell["states"]) if "states" in cell else cell for cell in document.get("cells", ())]
    return document | {"cells": cells}


HEDGE = Experiment(
    "hedge",
    RawHedge,
    kept=("simulated", "fifo_priority"),
    lists=_lists,
    contradiction=_contradiction,
    why_nothing=lambda case: "" if case.offered else "interrupted before the first request was due",
    why_void=why_void,
    counted=_counted,
    run_warnings=run_warnings,
    warnings=case_warnings,
    prepared=_with_counts,
)
explained_hedge = HEDGE.explained
