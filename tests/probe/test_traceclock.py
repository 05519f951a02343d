"""A trace whose clock is not the probe's counter: its stamps are brought there, and how far they may be off counts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.schemas import fits
from tunectl.probe.attribution import CpuTrace, Traced
from tunectl.probe.causes import Event, Lost
from tunectl.probe.explain import explained
from tunectl.probe.traceclock import CLOCKSOURCE, RAW, Line, refusal

from .conftest import GAPS_S
from .samples import raw_cpu, raw_run
from .test_attribution import MOUNT, tracing, within
from .test_causes import OTHER, OUTSIDE, OWN, SOFTIRQ, TIMER, back, named, to
from .test_tracepages import KERNEL, page, record, timer

__all__ = ["tracing"]

BLURRED = "not known: the trace's clock is too coarse to tell the gap of an event"
LOST = "not known: events of the trace were lost"
GAP, APART_NS = (2_000_000, 2_009_000), 5_000  # the readings of raw_cpu(): CLOCK_MONOTONIC_RAW is so far ahead
HALF_WIDTHS: dict[str, Any] = {"clock_half_widths": [7, 9]}


def test_a_stamp_is_brought_to_the_counter() -> None:
    line = Line(1_000_000, 500, 2.5, 3)
    assert [line.at(stamp) for stamp in (500, 502, 400)] == [1_000_000, 1_000_005, 999_750]
    assert list(line.brought([(502, TIMER)])) == [(1_000_005, TIMER)]
    hours = Line(1 << 45, 1 << 45, 0.025, 1)  # of 25 MHz
    assert hours.at((1 << 45) + 12 * 3600 * 10**9) == (1 << 45) + 12 * 3600 * 25_000_000


@pytest.mark.parametrize(
    ("at", "cause"),
    [
        (1100, "local timer"),
        (990, "local timer"),
        (989, OUTSIDE),  # it cannot have been in the gap
        (4010, "local timer"),
        (4011, OUTSIDE),
    ],
)
def test_an_event_is_the_cause_of_the_gap_that_it_can_have_been_in(at: int, cause: str) -> None:
    assert named([[1000, 4000]], [(at, TIMER)], error_ticks=10) == [cause]
    assert named([[1000, 4000]], [(at, TIMER)]) == ["local timer" if 1000 <= at <= 4000 else OUTSIDE]


def test_an_event_between_two_near_gaps_is_the_cause_of_neither() -> None:
    gaps = [[1000, 2000], [2015, 3000], [5000, 6000]]
    assert named(gaps, [(2007, TIMER)], error_ticks=10) == [BLURRED, BLURRED, OUTSIDE]
    assert named(gaps, [(2007, TIMER)], error_ticks=7) == ["local timer", OUTSIDE, OUTSIDE]
    # What is known all the same: another event was in the one, and the other is not known.
    assert named(gaps, [(1100, SOFTIRQ), (2007, TIMER)], error_ticks=10)[:2] == ["softirq TIMER", BLURRED]
    # Three of them, shorter than the error.
    near = [[1000, 1002], [1005, 1007], [1010, 1012]]
    assert named(near, [(1006, TIMER)], error_ticks=10) == [BLURRED] * 3


def test_a_switch_between_two_near_gaps_still_says_who_has_the_cpu() -> None:
    gaps = [[1000, 2000], [2015, 9000]]
    left: list[Event] = [(1100, TIMER), (2008, to(OTHER)), (8900, back())]
    assert named(gaps, left, error_ticks=10) == ["local timer", "thread t41"]
    # That the CPU came back may be nobody's either; no move to another CPU is made of it.
    returned: list[Event] = [(1100, to(OTHER)), (2008, back()), (2500, TIMER)]
    assert named(gaps, returned, error_ticks=10) == [BLURRED, "local timer"]


def test_events_that_were_lost_may_have_been_in_either_gap() -> None:
    gaps = [[1000, 2000], [2015, 3000], [9000, 9900]]
    assert named(gaps, [(500, TIMER), (2007, Lost(OWN)), (9100, TIMER)], error_ticks=10) == [LOST, LOST, "local timer"]
    assert named([[1000, 2000]], [(1995, TIMER)], error_ticks=10, is_cut=True) == [LOST]


def test_the_way_in_may_be_longer_by_the_error() -> None:
    assert named([[1000, 9000]], [(6050, TIMER)], error_ticks=50) == ["local timer"]
    assert named([[1000, 9000]], [(6051, TIMER)], error_ticks=50) == [f"{OUTSIDE} + local timer"]


def by_trace(clock: str = RAW, hz: float = 1e9, stamp: int = GAP[0] + 100 + APART_NS, **changes: Any) -> dict[str, Any]:
    """The document of a run with one gap and a timer interrupt at this stamp of its trace."""
    cpu = raw_cpu(2, GAP, **{**HALF_WIDTHS, **changes})
    traced = Traced("", KERNEL, {2: CpuTrace(700, [page(stamp, record(0, timer()))], 0, False)}, 4096, 80, clock=clock)
    run = raw_run(cpu, clock=raw_run()["clock"] | {"hz": hz})
    document = explained(run, traced)
    fits("probe.jitter", document)
    return document


def test_a_document_says_how_far_an_event_may_be_off() -> None:
    document = by_trace()
    asked = document["attribution"]
    assert (asked["method"], asked["clock"], asked["clock_error_ns"]) == ("trace", RAW, 2 * 9 + 2 + 1)
    assert document["labels"] == ["local timer"]
    exact = by_trace("x86-tsc", stamp=GAP[0] + 100)["attribution"]
    assert (exact["clock"], exact["clock_error_ns"]) == ("x86-tsc", 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        # The kernel's clock stood still for a millisecond, as it does in a suspend, and the counter did not.
        ({"clock_readings": [[0, 5_000], [10**10, 10**10 - 995_000]]}, "went apart by 100 ppm on CPU 2"),
        ({"clock_readings": [[0, 5_000], [10**10, 5_000]]}, "were not read together on CPU 2"),
        ({"clock_half_widths": None}, "were not read together on CPU 2"),
        ({"steps_back": 1}, "the counter went backwards on CPU 2"),
    ],
)
def test_a_clock_that_is_no_straight_line_names_no_cause(changes: dict[str, Any], reason: str) -> None:
    changes = {name: value for name, value in changes.items() if value is not None}
    cpu = raw_cpu(2, GAP, **({} if not changes else HALF_WIDTHS | changes))
    traced = Traced("", KERNEL, {2: CpuTrace(700, [page(GAP[0] + 5_100, record(0, timer()))], 0, False)}, clock=RAW)
    document = explained(raw_run(cpu), traced)
    assert document["attribution"]["method"] == "counters"
    assert reason in document["attribution"]["reason"]
    assert document["labels"] == [""]
    assert any(
        f"single interruptions have no named cause: {document['attribution']['reason']}" in one
        for one in document["warnings"]
    )


@pytest.mark.parametrize(
    ("clock", "reason"),
    [
        ({"kernel_source": "hpet"}, "mono_raw goes by the clocksource, which is hpet, and not by the probe's counter"),
        ({"kernel_source": "kvm-clock"}, "which is kvm-clock"),
        ({"kernel_source": ""}, "which is not known"),
        (
            {"kernel_source": "arch_sys_counter"},
            "goes by the clocksource arch_sys_counter, and the probe by tsc",
        ),
        ({"drift_ppm": 2.1, "error_ppm": 0.05, "initial_error_ppm": 0.95}, "went apart by 2.1 ppm during the run"),
    ],
)
def test_a_clock_that_is_not_of_the_counter_names_no_cause(clock: dict[str, Any], reason: str) -> None:
    traced = Traced("", KERNEL, {2: CpuTrace(700, [], 0, False)}, clock=RAW)
    run = raw_run(raw_cpu(2, GAP, **HALF_WIDTHS), clock=raw_run()["clock"] | clock)
    asked = explained(run, traced)["attribution"]
    assert asked["method"] == "counters"
    assert reason in asked["reason"]
    known = {"kernel_source": "tsc", "drift_ppm": 1.9, "error_ppm": 0.05, "initial_error_ppm": 0.95}
    right = explained(run | {"clock": run["clock"] | known}, traced)["attribution"]
    assert right["method"] == "trace"


def test_a_clock_that_can_be_read_only_roughly_may_seem_to_drift() -> None:
    """As in an emulated guest: the readings say so themselves."""
    clock = {"drift_ppm": 60.0, "initial_error_ppm": 55.0, "error_ppm": 5.0}
    traced = Traced("", KERNEL, {2: CpuTrace(700, [], 0, False)}, clock=RAW)
    run = raw_run(raw_cpu(2, GAP, **HALF_WIDTHS), clock=raw_run()["clock"] | clock)
    assert explained(run, traced)["attribution"]["method"] == "trace"


@pytest.mark.parametrize(
    ("clocksource", "said"),
    [
        ("tsc", ""),
        ("arch_sys_counter", ""),
        ("hpet", "which is hpet"),
        ("kvm-clock", "which is kvm-clock"),
        ("", "not known"),
    ],
)
def test_the_clock_is_asked_for_only_where_it_is_of_the_counter(clocksource: str, said: str) -> None:
    assert bool(refusal(clocksource)) is bool(said)
    assert said in refusal(clocksource)


# A run of the probe with a trace in mono_raw, and two instances beside it in x86-tsc: one notes a switch before that
# trace does, the other one after it. Prints the stamps of each, in ticks, and the error that is claimed.
SANDWICH = r"""
import json, os
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import TraceInstance, TracePipe
from tunectl.probe import tracing
from tunectl.probe.causes import Switch
from tunectl.probe.raw import read_raw
from tunectl.probe.runner import document_of, start
from tunectl.probe.tracepages import Kernel, events
tracing.CLOCKS = ("mono_raw",)
root, place, cpu, event = Sysroot(), "sys/kernel/tracing", max(os.sched_getaffinity(0)), "sched/sched_switch"
beside = {}
def note(name):
    below = f"{place}/instances/t{os.getpid()}-{name}"
    os.mkdir("/" + below)
    beside[name] = instance = TraceInstance(root, below)
    instance.write("trace_clock", "x86-tsc")
    instance.confine(frozenset({cpu}))
    instance.write(f"events/{event}/enable", "1")
def noted(instance):
    instance.switch(False)
    pipe, pages = TracePipe(instance, cpu), []
    while page := pipe.take():
        pages.append(page)
    pipe.close()
    return events(pages, kernel)
def answer(line):
    said = tracer.answer(line)
    if said == "go\n":
        note("after")
    return said
formats = {event: root.read_text(f"{place}/events/{event}/format")}
kernel = Kernel(root.read_text(f"{place}/events/header_page"), formats, "")
try:
    note("before")
    words = ["jitter", "--duration", "0.5", "--cpus", str(cpu), "--intrude", "--wait-for-go"]
    with tracing.Tracer(root) as tracer:
        run = read_raw(document_of(start(words, frozenset({cpu}), answer=answer, enters=True)))
        traced = tracer.result().on_counter(run)
    trace = traced.cpus[cpu]
    found = [noted(beside["before"]), trace.events(traced.kernel, trace.pages), noted(beside["after"])]
    stamps = [[[at, repr(what)] for at, what in one if type(what) is Switch] for one in found]
finally:
    for instance in beside.values():
        instance.write("events/enable", "0")
        os.rmdir(instance.path)
spun = run.cpus[0].tsc_start, run.cpus[0].tsc_end
print(json.dumps([traced.clock, trace.error_ticks, run.clock.hz, spun, stamps]))
"""


@pytest.fixture
def of_counter() -> None:
    """Skips where CLOCK_MONOTONIC_RAW is not made of the probe's counter, or tracing has no other clock that is."""
    if Path(f"/{CLOCKSOURCE}").read_text() != "tsc\n":
        pytest.skip("the kernel's clocksource is not the TSC")


def same(there: list[Any], wanted: list[Any]) -> list[Any]:
    """The part of a longer trace that has the same switches; the nearest, where few switches came more than once."""
    whats = [what for _, what in wanted]
    parts = [there[at : at + len(whats)] for at in range(len(there))]
    alike = [part for part in parts if [what for _, what in part] == whats]
    return min(alike, key=lambda part: abs(part[0][0] - wanted[0][0]))


@pytest.mark.slow
@pytest.mark.pins
@pytest.mark.usefixtures("tracing", "installed", "of_counter")
def test_no_stamp_is_further_off_than_is_said() -> None:
    argv = within(MOUNT, sys.executable, "-c", SANDWICH)
    for _ in range(10):  # a CPU that nobody else wants, or that was away for the whole run, has no switch
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        clock, error, hz, (start, end), (before, brought, after) = json.loads(done.stdout)
        assert clock == RAW
        assert error * 1e9 / hz < 5_000
        if brought := [one for one in brought if start < one[0] < end]:
            break
    assert brought  # how many there are is the machine's to say
    for (early, _), (at, _), (late, _) in zip(same(before, brought), brought, same(after, brought), strict=True):
        assert early - error <= at <= late + error


# What a user types, on a kernel whose tracing has no clock that is the counter.
WITHOUT = "from tunectl.probe import tracing; tracing.CLOCKS = ('no-such-clock', 'mono_raw'); "


@pytest.mark.slow
@pytest.mark.pins
@pytest.mark.usefixtures("tracing", "installed", "of_counter")
def test_where_tracing_does_not_have_the_counter_causes_are_found_all_the_same(cpu: int) -> None:
    argv = [sys.executable, "-c", f"{WITHOUT}from tunectl.cli.start import main; main()", "--format", "json", "probe"]
    argv += ["jitter", "--intrude", "--attribute", "--cpus", str(cpu), "--duration"]
    for seconds in (GAPS_S, 1, 4, 16):  # while others have the CPU, their ticks are no cause
        done = subprocess.run(within(MOUNT, *argv, str(seconds)), capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        document = json.loads(done.stdout)
        assert document["attribution"]["clock"] == RAW
        assert 0 < document["attribution"]["clock_error_ns"] < 5_000
        (one,) = document["cpus"]
        assert sum(row["count"] for row in one["causes"]) == one["interruptions"]
        assert sum(row["total_ns"] for row in one["causes"]) == one["stolen_ns"]
        if has_ticks := any("local timer" in row["cause"] for row in one["causes"]):
            break
    assert has_ticks
