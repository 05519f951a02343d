"""What `tunectl-probe feed` counted, as types; which cases are void, and the cells, stages and warnings. Pure."""

import math
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from tunectl.experiments import pair
from tunectl.experiments.capture import Replay
from tunectl.experiments.frame import Case, Count, Experiment, Judged, Lists, Values
from tunectl.experiments.tick_figures import FEWEST, Figures
from tunectl.shapes import (
    BARS,
    FEED_STAGES,
    FORMATS,
    PERCENTILES,
    RCVBUF,
    TLS,
    TRANSPORTS,
    Drops,
    FeedCase,
    about,
    having,
)
from tunectl.wording import nanoseconds, percent, plural

SPINNING = "poll0"
TWO_LINES = "multicast-ab"  # each message is sent twice on purpose
_OF_PROFILE = 3 + len(FEED_STAGES)
NEGATIVE_MOST = 0.001  # of the messages, that may have a stage shorter than nothing
_WARM_UPS_LEAST, _WARM_UPS_MOST = 100, 20_000  # of the native program (feed/plan.c)
_SHARED_MOST = 0.01  # of the messages, that may have the stamp of another one
_COUNTED = (
    *("warm_ups", "due", "sent", "lost", "unsent", "doubled", "reordered", "strangers", "reads", "stamp_shared"),
    *("allocations", "minor_faults", "major_faults", "involuntary_switches", "voluntary_switches"),
    *("sender_involuntary_switches", "close_code", "napi_id", "rcvbuf_bytes"),
)


_OF_BUCKET = "From tick, to tick, how many messages, and of these the sum of each stage in ticks."
Profile = Annotated[list[int], Meta(min_length=_OF_PROFILE, max_length=_OF_PROFILE, description=_OF_BUCKET)]


class Stamps(msgspec.Struct, frozen=True, kw_only=True):
    """The kernel's receive stamps."""

    asked: Literal["sw", "hw", "off"]
    kind: Annotated[Literal["sw", "hw", "off"], about("sw: the kernel's own; hw: the network card's.")]
    reason: Annotated[str, about("Why there are none though they were asked for.")] = ""
    were_on: Annotated[bool | None, about("Somebody else had switched time stamps on already. Null: unknown.")] = None
    uncertainty_ticks: Annotated[Count | None, about("Of a stamp against the counter; null without stamps.")] = None
    stepped: Annotated[bool, about("Their clock was set meanwhile: they are not comparable.")] = False


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The run in equal intervals: messages by when they were due, the sum of their times and the longest, in ticks."""

    start: Count
    interval_ticks: Annotated[int, Meta(gt=0)]
    intervals: Annotated[list[tuple[Count, int, int]], about("[messages, sum of total, the longest]")]


class RawCase(Case, msgspec.Struct, frozen=True, kw_only=True):
    """One combination of transport, format and the rest."""

    shape = FeedCase
    asked = ("transport", "format", "symbols", "rate", "burst", "waiting", "tls", "alloc")
    transport: Annotated[str, TRANSPORTS]
    format: Annotated[str, FORMATS]
    symbols: Count
    rate: Annotated[Count, about("Messages a second, of all symbols together.")]
    burst: Annotated[Count, about("Messages that are due at the same time.")]
    waiting: Annotated[Literal["poll", "poll0", "busy-poll"], about("How the receiver waits; poll0 spins.")]
    tls: Annotated[str, TLS]
    alloc: Annotated[Count, about("How often the receiver copies each message into new memory, on purpose.")]
    warm_ups: Annotated[Count, about("Messages before the measured time; they are in no other field.")] = 0
    due: Annotated[Count, about("Messages whose due time came in the measured time.")] = 0
    sent: Count = 0
    arrived: Annotated[Count, about("First copies that reached the book.")] = 0
    doubled: Annotated[Count, about("Second copies.")] = 0
    reordered: Annotated[Count, about("Came after a later one of their symbol: the book ignores them.")] = 0
    grown: Annotated[Count, about("Shorter in the capture that is replayed than any of ours is.")] = 0
    strangers: Annotated[Count, about("Packets that are no messages of this run.")] = 0
    unsent: Annotated[Count, about("Due, and not sent before the end.")] = 0
    unsent_ticks: Annotated[Values, about("From when each unsent message was due to the end.")] = []
    reads: Annotated[Count, about("That brought at least one whole message.")] = 0
    batch_sizes: Annotated[Values, about("Messages of a read and how many reads, in turns; ascending.")] = []
    stamped: Annotated[bool, about("wire is there, and kernel begins at the receive stamp.")] = False
    stamps: Stamps | None = None
    stamp_shared: Annotated[Count, about("Of reads with several: their stamp is that of the read's last byte.")] = 0
    negative: Annotated[
        dict[str, Count], having(*FEED_STAGES), about("Messages whose stage was below minus the uncertainty.")
    ] = {}
    drops: Drops = Drops()
    allocations: Annotated[Count, about("Made by the receiver on purpose (--alloc).")] = 0
    minor_faults: Annotated[Count, about("Of the receiver; so are major_faults and the switches.")] = 0
    major_faults: Count = 0
    involuntary_switches: Annotated[Count, about("How often another task took the receiver's CPU.")] = 0
    voluntary_switches: Count = 0
    sender_involuntary_switches: Count = 0
    sender_voluntary_switches: Annotated[Count, about("It spins, so only a stop makes it leave its CPU.")] = 0
    receiver_ns: Annotated[Count, about("CPU time of the receiver in the measured time.")] = 0
    receiver_ticks: Annotated[Count, about("How long that was.")] = 0
    close_code: Annotated[Count, about("With what the WebSocket reader failed; 0: it did not.")] = 0
    napi_id: Annotated[Count, about("Of the receiving socket; 0: no device queue feeds it.")] = 0
    rcvbuf_bytes: Annotated[Count, RCVBUF] = 0
    failed: Literal["", "sending", "receiving"] = ""
    errno: Count = 0
    total: Annotated[Values, about("book - due")] = []
    late: Annotated[Values, about("sent - due")] = []
    stages: Annotated[
        dict[str, Values],
        having(*FEED_STAGES),
        about("The parts of total. wire is empty where not stamped, and kernel is then both."),
    ] = {}
    profile: list[Profile] = []
    series: Series | None = None

    @property
    def lost(self) -> int:
        """Sent, and never there."""
        return self.sent - self.arrived

    @property
    def warm_up_s(self) -> float:
        """A fifth of a second of messages, but neither too few nor too many; whole bursts, as the program has it."""
        fewest = min(max(self.rate // 5, _WARM_UPS_LEAST), _WARM_UPS_MOST)
        return math.ceil(fewest / self.burst) * self.burst / self.rate


class RawFeed(pair.PairRun[RawCase], frozen=True, kw_only=True):
    """What `tunectl-probe feed` counted, in ticks of its counter; docs/probe-feed.md has the definitions."""

    busy_poll_us: pair.BusyPoll


def _lists(case: RawCase) -> Lists:
    stages = {f"stages.{name}": (case.stages.get(name, []), case.arrived) for name in FEED_STAGES}
    if not case.stamped:
        stages["stages.wire"] = (case.stages.get("wire", []), 0)
    return {
        "unsent_ticks": (case.unsent_ticks, case.unsent),
        "batch_sizes": (case.batch_sizes, case.reads),
        "total": (case.total, case.arrived),
        "late": (case.late, None),
        **stages,
    }


def _contradiction(case: RawCase) -> str:
    """A file that was edited, or cut and mended, does not add up."""
    if case.sent + case.unsent != case.due:
        return f"{case.sent} sent and {case.unsent} unsent are not the {case.due} messages that were due"
    if case.lost < 0:
        return f"{case.arrived} messages arrived, and {case.sent} were sent"
    if case.total and case.total[0] < 0:
        return "a message reached the book before it was due: the counters of the two CPUs have no common time"
    if missing := [name for name in FEED_STAGES if name not in case.stages or name not in case.negative]:
        return f"stages and negative: {missing[0]} is missing"
    rows = {"profile": [row[2] for row in case.profile]}
    if case.series:
        rows["series"] = [count for count, _, _ in case.series.intervals]
    for name, counts in rows.items():
        if sum(counts) != case.arrived:
            return f"{name} holds {sum(counts)} of {case.arrived}"
    for place, (first, end, count, *stages) in enumerate(case.profile):
        if not first * count <= sum(stages) <= end * count:
            return f"profile[{place}]: its stages do not add up to its messages' times"
    return ""


def due_figures(case: RawCase, hz: float) -> Figures:
    """From due to the book, of every message that was due.

    One that was never sent counts as what it had waited at the end; one that was lost as longer than all others.
    """
    return Figures([*case.total, *case.unsent_ticks], hz, case.lost)


def bars_ns(case: RawCase, due: Figures, has_wire: bool) -> dict[str, dict[str, float | None] | None]:
    """Of what the time at a percentile is made: the mean of each stage, of the messages about as long as that.

    None where the percentile is, and where no message so long has arrived.
    """
    spread: Mapping[str, float | None] = due.spread_ns(FEWEST) or {}
    return {name: _bar(case, due, name, has_wire) if spread.get(name) is not None else None for name in BARS}


def _bar(case: RawCase, due: Figures, name: str, has_wire: bool) -> dict[str, float | None] | None:
    ticks = due.most if name == "max" else due.at(name)
    place = bisect_right(case.profile, ticks, key=lambda row: row[0]) - 1
    if place < 0 or not math.isfinite(ticks) or ticks > case.profile[place][1]:
        return None
    _, _, count, *sums = case.profile[place]
    bar: dict[str, float | None] = {
        stage: round(ticks_ * 1e9 / due.hz / count, 1) for stage, ticks_ in zip(FEED_STAGES, sums, strict=True)
    }
    return bar if has_wire else bar | {"wire": None}


def why_void(case: RawCase, run: RawFeed) -> str:
    """Why the times of a measured case are no result; "" where they are one."""
    if case.sender_voluntary_switches:
        return "void: the probe was stopped during the case (by a signal, or a debugger)"
    if not case.receiver_ticks:
        return "void: the receiver waited in vain for the end, so nobody knows whether it had its CPU"
    if case.waiting == SPINNING:
        return pair.why_no_spinner(pair.receiver_share(case, run.clock.hz), run.cpus[1])
    if case.involuntary_switches <= pair.OTHERS_MOST * case.sent:
        return ""
    times = f"the receiver was preempted {plural(case.involuntary_switches, 'time')} in {plural(case.sent, 'message')}"
    return (
        f"void: {times} on CPU {run.cpus[1]} (it may be in {100 * pair.OTHERS_MOST:.0f} %): "
        "the delays are not those of a sleeper that has its CPU to itself"
    )


def run_warnings(run: RawFeed) -> Iterator[str]:
    """About the whole run."""
    spins = any(case.waiting == SPINNING and not case.reason for case in run.cases)
    virtual = "the hypervisor may stop either CPU unseen, and stages hold that"
    return pair.pair_warnings(run, virtual, "" if spins else None)


def case_warnings(case: RawCase, run: RawFeed) -> Iterator[str]:
    """About one case that was measured."""
    yield from _of_messages(case, run)
    yield from _of_stamps(case)
    if faults := case.minor_faults + case.major_faults:
        yield f"the receiver took {plural(faults, 'page fault')}"
    yield from pair.preempted("receiver", case.involuntary_switches)


def failures(case: RawCase) -> Iterator[str]:
    """Why a case ended before its last message."""
    yield from pair.ended_by(case.failed, case.errno)
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
    yield from pair.unkept(Figures(case.late, run.clock.hz))
    yield from pair.preempted("sender", case.sender_involuntary_switches)


def _lost(case: RawCase, due: Figures) -> Iterator[str]:
    """Lost messages are the longest of all; whatever is decided by them has no value."""
    if not case.lost:
        return
    unknown = [name for name in PERCENTILES if not math.isfinite(due.at(name)) and due.n >= FEWEST.get(name, 0)]
    without = ", ".join(["the mean", *(f"P{name}" for name in unknown)])
    share = percent(100 * case.lost / case.sent)
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


def _why_nothing(case: RawCase) -> str:
    if case.arrived:
        return ""
    if case.failed:
        return f"{case.failed} failed: {os.strerror(case.errno)}"
    if case.close_code:
        return f"the WebSocket reader failed with {case.close_code} before the first message"
    if not case.due:
        return "interrupted before the first message was due"
    return "every message was lost" if case.sent else "no message was sent before the end"


def _counted(run: RawFeed, judged: Judged) -> dict[str, Any]:
    case, hz, has = judged.case, run.clock.hz, judged.has_figures
    due = due_figures(case, hz) if has else Figures((), hz)
    has_share = case.arrived and case.receiver_ticks
    return {
        "failed": "; ".join(failures(case)),
        "n": due.n,
        "due_to_book_ns": due.spread_ns(FEWEST),
        "lower_bounds_from_ns": due.ns(case.unsent_ticks[0]) if has and case.unsent else None,
        "late_ns": judged.figures(case.late, hz).spread_ns(FEWEST),
        "stages_ns": {name: judged.figures(case.stages.get(name, ()), hz).spread_ns(FEWEST) for name in FEED_STAGES},
        "bars_ns": bars_ns(case, due, case.stamped),
        "histogram": due.histogram_ns(),
        "series": _series(case.series, due) if has and case.series else None,
        **{name: getattr(case, name) for name in _COUNTED},
        "batch_sizes": [[*row] for row in zip(case.batch_sizes[::2], case.batch_sizes[1::2], strict=True)],
        "negative_stages": {name: case.negative.get(name, 0) for name in FEED_STAGES},
        "drops": {name: getattr(case.drops, name) for name in ("socket", "softnet", "nic")},
        "stamped": case.stamped,
        "stamps": _stamps(case.stamps, hz) if case.stamps else None,
        "receiver_cpu_percent": round(100 * pair.receiver_share(case, hz), 2) if has_share else None,
    }


def _series(series: Series, due: Figures) -> dict[str, Any]:
    rows = [[count, due.ns(total), due.ns(longest)] for count, total, longest in series.intervals]
    return {"interval_s": round(series.interval_ticks / due.hz, 6), "intervals": rows}


def _stamps(stamps: Stamps, hz: float) -> dict[str, Any]:
    return {
        "asked": stamps.asked,
        "kind": stamps.kind,
        "reason": stamps.reason,
        "were_on": stamps.were_on,
        "uncertainty_ns": None if stamps.uncertainty_ticks is None else round(stamps.uncertainty_ticks * 1e9 / hz, 1),
        "stepped": stamps.stepped,
    }


def stamp_cost_ns(run: RawFeed, judgements: Sequence[Judged], unstamped: RawFeed | None) -> int | None:
    """How much longer the median is with stamps than without: of the first case that is stamped, and of the same.

    None where one of the two has no result, or was overloaded: its median may be a lower bound.
    """
    stamped = next((judged for judged in judgements if judged.case.stamped), None)
    if stamped is None or unstamped is None:
        return None
    with_, without = _median_ns(stamped, run), _median_ns(FEED.judged(unstamped)[0], unstamped)
    return None if with_ is None or without is None else with_ - without


def _median_ns(judged: Judged, run: RawFeed) -> int | None:
    due = due_figures(judged.case, run.clock.hz)
    return due.known_ns(due.at("50")) if judged.has_figures and not judged.case.unsent else None


FEED = Experiment(
    "feed",
    RawFeed,
    kept=("fifo_priority", "busy_poll_us"),
    lists=_lists,
    contradiction=_contradiction,
    why_nothing=_why_nothing,
    why_void=why_void,
    counted=_counted,
    run_warnings=run_warnings,
    warnings=case_warnings,
)


class RoundTrip(NamedTuple):
    """Messages went to another host and back, by this interface of this host."""

    peer: pair.Peer
    interface: str


def explained_feed(
    raw: dict[str, Any],
    unstamped: dict[str, Any] | None = None,
    replay: Replay | None = None,
    trip: RoundTrip | None = None,
) -> dict[str, Any]:
    """The tunectl.probe.feed/1 document of what `tunectl-probe feed` counted. Pure.

    `unstamped` is the document of one more run: of the first case that was stamped, without stamps. `replay` is the
    capture that decided the messages' times; without a `trip` they stayed on this host.
    """
    run = FEED.read(raw)
    found = FEED.judged(run)
    return {
        **FEED.opening(raw),
        "clock": run.clock.shown(raw["clock"]),
        "peer": trip.peer._asdict() if trip else None,
        "interface": trip.interface if trip else None,
        "replay": replay.said(max(case.grown for case in run.cases)) if replay else None,
        "stamp_cost_ns": stamp_cost_ns(run, found, FEED.read(unstamped) if unstamped else None),
        "warnings": list(run_warnings(run)),
        "no_result": FEED.no_result(run, found),
        "budget": {"limits": {}, "verdict": "not-judged", "broken": []},
        "cells": FEED.cells(run, found, is_round_trip=trip is not None),
    }
