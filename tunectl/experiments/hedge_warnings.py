"""What makes a run of `hedge`, or one of its cases, mean less than it seems to, and why no hedge helps. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tunectl.cpulist import named_cpus
from tunectl.experiments.hedge_cases import natural_share
from tunectl.experiments.hedge_facts import SERVERS, RawCase, RawHedge
from tunectl.experiments.hedge_void import ROLES
from tunectl.experiments.pair_warnings import counter, ended_early, host, preempted, real_time_limits
from tunectl.experiments.tick_figures import Figures
from tunectl.probe.jitter_warnings import is_slow
from tunectl.probe.phase import evidence
from tunectl.wording import nanoseconds

GROWN = 4  # times what the queues held in the first quarter: they have no mean
UNANSWERED_MOST = 0.01
FREE_LEAST = 0.01  # of the time that both servers have: what is left works off no burst
DEPENDENT = 2.0  # times as often as chance has it, and then with little doubt
_DOUBT = 1e-4
_SERVICE_OFF = 1.1  # times the service time that was asked for
_MISSES = (("50", 0.5), ("90", 0.1), ("95", 0.05), ("99", 0.01), ("99.9", 0.001), ("99.99", 0.0001))
_TOLD = (0.01, 0.001, 0.0001)


def run_warnings(run: RawHedge) -> list[str]:
    """About the whole run."""
    if run.facts is None:
        return [*ended_early(run)]
    return [
        *ended_early(run),
        *_placement(run),
        *real_time_limits(run),
        *counter(run),
        *host(run, run.facts, "the hypervisor may stop any of the three CPUs unseen, or all of them at once"),
    ]


def _placement(run: RawHedge) -> Iterator[str]:
    facts = run.facts
    if facts is None:
        return
    if shared := [cpu for cpu, fact in zip(run.cpus, facts.cpus, strict=True) if not fact.is_isolated]:
        yield f"not isolated: {named_cpus(shared)}; other threads can be scheduled there, and delay a request"
    if run.shares_core(1, 2):
        yield (
            f"no hedge helps against what slows a core: both servers (CPUs {run.cpus[1]} and {run.cpus[2]}) are "
            "hardware threads of one"
        )
    for which in (1, 2):
        if run.shares_core(0, which):
            yield f"the client and {ROLES[which]} (CPUs {run.cpus[0]} and {run.cpus[which]}) share a physical core"
    if facts.shares_main:
        yield (
            f"no CPU is left for the probe's main thread: it shares CPU {run.cpus[0]} with the client, and nobody "
            "watches whether somebody else wants the three CPUs"
        )
    if slow := [cpu for cpu, fact in zip(run.cpus, facts.cpus, strict=True) if is_slow(fact.governor)]:
        yield f"the frequency governor is not performance on {named_cpus(slow)}"


def case_warnings(case: RawCase, run: RawHedge) -> list[str]:
    """About one case that was measured."""
    return [
        *_missed(case),
        *_collapsed(case),
        *_saturated(case),
        *_starved(case),
        *_together(case, run),
        *_service(case, run),
        *_threads(case),
    ]


def _missed(case: RawCase) -> Iterator[str]:
    """What was refused or has no answer is longer than all others; whatever is decided by it has no value."""
    if not case.missed:
        return
    share = case.missed / case.offered
    lost = [f"P{name}" for name, beyond in _MISSES if share > beyond]
    said = next((f"more than {100 * beyond:g} % missed: " for beyond in _TOLD if share > beyond), "")
    yield (
        f"{said}{case.shed} of {case.offered} requests were refused and {case.unanswered} had no answer "
        f"({100 * share:.2g} %), so {', '.join([*lost, 'the mean'])} and the longest have no value"
    )


def is_collapsed(case: RawCase) -> bool:
    """Do requests come faster than they are done with?

    The queues hold more than four times as many in the last quarter as in the first, and more than one; or more than
    1 % of the requests have no answer; or second copies take all the time that the servers have left.
    """
    return bool(_unanswered(case)) or _grows(case) or _is_filled(case)


def _unanswered(case: RawCase) -> str:
    if case.unanswered <= UNANSWERED_MOST * case.offered:
        return ""
    return f"{100 * case.unanswered / case.offered:.3g} % of the requests had no answer"


def _grows(case: RawCase) -> bool:
    first, last = case.queues or (0.0, 0.0)
    return last > GROWN * first and last > 1


def _is_saturated(case: RawCase) -> bool:
    return case.free < FREE_LEAST


def _is_filled(case: RawCase) -> bool:
    """Are second copies what the servers have no time left for?

    A delay that follows the queues hedges just as much as the servers can bear. The queues then stand still at their
    worst, soon after the start, and neither grow nor leave many without an answer. A queue that refuses cannot be long.
    """
    return bool(case.hedged) and not case.shed_at and _is_saturated(case)


def _collapsed(case: RawCase) -> Iterator[str]:
    reasons = [_unanswered(case)] if _unanswered(case) else []
    if _grows(case) and case.queues:
        first, last = case.queues
        reasons.insert(
            0, f"the queues held {first:.3g} requests on average in the first quarter and {last:.3g} in the last"
        )
    if _is_filled(case) and not reasons:
        reasons.append(
            f"second copies, of {100 * case.hedged / case.offered:.3g} % of the requests, fill the servers, which were "
            f"free for {100 * case.free:.2g} % of the time: the queues stand still at their worst, and "
            "no burst is worked off"
        )
    if reasons:
        yield f"collapsed: {', and '.join(reasons)}"


def _saturated(case: RawCase) -> Iterator[str]:
    """Servers without time to spare, by the requests alone, or by what a limited queue admits."""
    if _is_saturated(case) and not is_collapsed(case):
        what = "what they cannot do is refused" if case.shed_at else "the queues do not recover from what fills them"
        yield f"saturated: the servers were free for {100 * case.free:.2g} % of the time; {what}"


def _starved(case: RawCase) -> Iterator[str]:
    """A budget below the share of late requests decides by itself what is hedged."""
    late = case.late_requests
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


def _together(case: RawCase, run: RawHedge) -> Iterator[str]:
    """Both servers slow at once."""
    found = case.together
    if not is_dependent(case):
        return
    yield (
        f"no hedge helps here: both servers were slow with the same request {found.both_slow} times, and by chance it "
        f"would have been {found.expected:.2g}: {_why_together(case, run)}"
    )


def is_dependent(case: RawCase) -> bool:
    """Are both servers slow with one request more often than chance has it?"""
    found = case.together
    first_slow = sum(found.first_slow)
    if found.both_slow <= DEPENDENT * found.expected or not first_slow:
        return False
    return evidence(found.both_slow, first_slow, found.expected / first_slow) > -math.log(_DOUBT)


def _why_together(case: RawCase, run: RawHedge) -> str:
    """What this run knows of the reason."""
    reasons = []
    if case.stall == "common":
        reasons.append("they stall at the same instants, as was asked for")
    if run.shares_core(1, 2):
        reasons.append("they share a core")
    if case.throttled:
        reasons.append(f"their cores or their package were throttled {case.throttled} times")
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


def _service(case: RawCase, run: RawHedge) -> Iterator[str]:
    if run.simulated:
        return
    if case.throttled:
        yield f"the servers' cores or their package were throttled {case.throttled} times meanwhile"
    for name in SERVERS:
        service = Figures(case.service.get(name, []), run.clock.hz)
        median_ns = service.at("50") * 1e9 / run.clock.hz if service.n else 0.0
        if median_ns > _SERVICE_OFF * case.service_ns:
            yield (
                f"server {name.upper()} took {nanoseconds(median_ns)} for work that was calibrated to "
                f"{nanoseconds(case.service_ns)}: its core runs slower than before, or shares its units"
            )


def _threads(case: RawCase) -> Iterator[str]:
    for role, thread in zip(ROLES, case.threads, strict=False):
        if thread.page_faults:
            yield f"the {role} took {thread.page_faults} page faults"
        yield from preempted(role, thread.preemptions)
