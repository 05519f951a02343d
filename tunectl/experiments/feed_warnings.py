"""What makes a run of `feed`, or one of its cases, mean less than it seems to: sentences for people. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tunectl.experiments.feed_cases import SPINNING, TWO_LINES
from tunectl.experiments.feed_facts import RawCase, RawFeed
from tunectl.experiments.feed_figures import due_figures
from tunectl.experiments.pair_warnings import (
    clock,
    ended_by,
    ended_early,
    fifo,
    machine,
    placement,
    preempted,
    two_spinners,
    unkept,
)
from tunectl.experiments.tick_figures import FEWEST, PERCENTILES, Figures
from tunectl.wording import nanoseconds, plural

NEGATIVE_MOST = 0.001  # of the messages, that may have a stage shorter than nothing
_SHARED_MOST = 0.01  # of the messages, that may have the stamp of another one


def run_warnings(run: RawFeed) -> list[str]:
    """About the whole run."""
    spins = any(case.waiting == SPINNING and not case.reason for case in run.cases)
    return [
        *ended_early(run),
        *placement(run),
        *(two_spinners(run) if spins else ()),
        *fifo(run),
        *clock(run),
        *machine(run, "the hypervisor may stop either CPU unseen, and stages hold that"),
    ]


def case_warnings(case: RawCase, run: RawFeed) -> list[str]:
    """About one case that was measured."""
    return [*_of_messages(case, run), *_of_stamps(case), *_of_receiver(case)]


def failures(case: RawCase) -> Iterator[str]:
    """Why a case ended before its last message."""
    yield from ended_by(case.failed, case.errno)
    if case.close_code:
        yield f"the WebSocket reader failed with {case.close_code} before the last message"


def _of_messages(case: RawCase, run: RawFeed) -> Iterator[str]:
    due = due_figures(case, run.clock.hz)
    yield from failures(case)
    yield from _lost(case, due)
    if case.unsent:
        yield (
            f"{case.unsent:,} of {case.due:,} messages were not sent before the end: each counts as what it had waited "
            f"by then, so figures from {nanoseconds(due.ns(case.unsent_ticks[0]))} on are lower bounds"
        )
    if case.drops.socket and case.transport == "tcp":  # mostly what came twice: a full window drops nothing
        yield f"the receiving TCP socket threw {plural(case.drops.socket, 'segment')} away, such as repeated ones"
    elif case.drops.socket:
        yield f"the receiving socket dropped {plural(case.drops.socket, 'packet')}: its buffer was full"
    if case.drops.softnet:
        dropped = plural(case.drops.softnet, "packet")
        yield f"the host dropped {dropped} before they reached a socket (/proc/net/softnet_stat)"
    if case.drops.nic:
        yield f"this host's interface dropped {plural(case.drops.nic, 'packet')}, of this connection or of others"
    if case.doubled and case.transport != TWO_LINES:
        yield f"{plural(case.doubled, 'message')} came twice"
    if case.strangers:
        yield f"not of this run, and left out: {plural(case.strangers, 'packet')}"
    if case.reordered:
        yield f"{plural(case.reordered, 'message')} came after a later one of the same symbol"
    yield from unkept(Figures(case.late, run.clock.hz))
    yield from preempted("sender", case.sender_involuntary_switches)


def _lost(case: RawCase, due: Figures) -> Iterator[str]:
    """Lost messages are the longest of all; whatever is decided by them has no value."""
    if not case.lost:
        return
    unknown = [name for name in PERCENTILES if not math.isfinite(due.at(name)) and due.n >= FEWEST.get(name, 0)]
    without = ", ".join(["the mean", *(f"P{name}" for name in unknown)])
    share = f"{100 * case.lost / case.sent:.2g} %"
    yield (
        f"{case.lost:,} of {case.sent:,} messages were lost ({share}): they count as longer "
        f"than all others, so {without} and the longest have no value"
    )


def _of_stamps(case: RawCase) -> Iterator[str]:
    stamps = case.stamps
    is_card = stamps is not None and stamps.kind == "hw"
    if stamps and stamps.stepped:
        clock = "the network card's clock" if is_card else "CLOCK_REALTIME"
        yield f"{clock} was set during the run: the time stamps are not comparable, and kernel contains wire"
    elif stamps and stamps.asked != "off" and not case.stamped:
        none = "the network card did not stamp every message" if is_card else "the kernel made none"
        yield f"no time stamps: {stamps.reason or none}; kernel contains wire"
    if case.stamped and stamps and stamps.were_on:
        yield "somebody else had switched time stamps on already: without them this host may be faster"
    if case.stamped and case.stamp_shared > _SHARED_MOST * case.arrived:
        yield (
            f"{case.stamp_shared:,} of {case.arrived:,} messages came in a read with others, and have the stamp of its "
            "last byte: their wire is too long by as much as kernel is too short"
        )
    for name, count in case.negative.items():
        if count > NEGATIVE_MOST * case.arrived:
            yield (
                f"in {count:,} of {case.arrived:,} messages {name} is negative by more than the stamps' uncertainty: "
                f"{name} and its neighbours are wrong"
            )


def _of_receiver(case: RawCase) -> Iterator[str]:
    if faults := case.minor_faults + case.major_faults:
        yield f"the receiver took {plural(faults, 'page fault')}"
    yield from preempted("receiver", case.involuntary_switches)
