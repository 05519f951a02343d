"""Whether a case of `feed` says what it seems to say: did the receiver have its CPU? Pure."""

from __future__ import annotations

from tunectl.experiments.feed_cases import SPINNING
from tunectl.experiments.feed_facts import RawCase, RawFeed
from tunectl.experiments.pair_receiver import OTHERS_MOST, cpu_share, why_no_spinner, why_throttled
from tunectl.wording import plural


def why_void(case: RawCase, run: RawFeed) -> str:
    """Why the times of a measured case are no result; "" where they are one."""
    if throttled := why_throttled(case.throttled_us):
        return throttled
    if case.sender_voluntary_switches:
        return "void: the probe was stopped during the case (by a signal, or a debugger)"
    if not case.receiver_ticks:
        return "void: the receiver waited in vain for the end, so nobody knows whether it had its CPU"
    if case.waiting == SPINNING:
        return why_no_spinner(share_of(case, run.clock.hz), run.cpus[1])
    if case.involuntary_switches <= OTHERS_MOST * case.sent:
        return ""
    times = f"the receiver was preempted {plural(case.involuntary_switches, 'time')} in {plural(case.sent, 'message')}"
    return (
        f"void: {times} on CPU {run.cpus[1]} (it may be in {100 * OTHERS_MOST:.0f} %): "
        "the delays are not those of a sleeper that has its CPU to itself"
    )


def share_of(case: RawCase, hz: float) -> float:
    """How much of its CPU the receiver had."""
    return cpu_share(case.receiver_ns, case.receiver_ticks, hz)
