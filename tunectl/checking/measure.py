"""Watches the host for a while: once as it is, once with a spinner on the isolated CPUs."""

import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from tunectl.checking.outcomes import unknown
from tunectl.checking.tick import Spun, TickCount, counted, counted_by_probe
from tunectl.checking.window import Window, read_counters
from tunectl.cpulist import CpuSet, named_cpus
from tunectl.errors import TunectlError
from tunectl.fix import of_text
from tunectl.host.occupants import Key, Occupant
from tunectl.host.sysroot import Sysroot
from tunectl.host.timers import TIMER_LIST, Armed, parse_timer_list
from tunectl.probe.runner import run_jitter

STILL = "the counters stand still: a recorded host does not run"
# A running host's timers fire within this time, on any kernel and however idle it is.
_FIRST_SIGN_S = 0.1
_SECOND_LOOK_S = 1.0
_LOOK_S = 0.05
_SOON_NS = 100_000_000  # what expires ten times a second or more often is never further away


class Spinning(NamedTuple):
    """What a host did while a spinner was on some CPUs: its counters, and the timer interrupts of each such CPU."""

    window: Window
    ticks: Mapping[int, TickCount]
    left: Mapping[int, str] = {}  # the CPUs that the spinner left to somebody else's threads, and to whose
    spinner: Key | None = None  # who spun, where it was no thread of ours


def measure(root: Sysroot, window_s: float, declared: Collection[Key] = ()) -> Window:
    """The counters over `window_s` seconds. Settled as unknown where nothing on this host moves."""
    before = read_counters(root, declared=declared)
    if not before.interrupts.rows:
        try:
            root.read_text("proc/interrupts")
        except OSError as error:
            unknown(f"{root.path('proc/interrupts')} cannot be read: {error.strerror}")
        unknown(f"{root.path('proc/interrupts')} holds no interrupt")
    started = time.monotonic()
    if not root.live:
        first = root.get_text("proc/interrupts")
        time.sleep(min(_FIRST_SIGN_S, window_s))
        if root.get_text("proc/interrupts") == first:
            unknown(STILL)
    time.sleep(max(window_s - (time.monotonic() - started), 0.0))
    window = Window(before, read_counters(root, last=True, declared=declared))
    if window.still:
        unknown(STILL)
    return window


def measure_beside(window: Window, cpu: int, there: Occupant) -> Spinning:
    """What a CPU did while a thread of somebody else was there: that is the spinner, as long as the CPU is busy."""
    share = window.idle_share(cpu)
    busy_s = 0.0 if share is None else (1 - share) * window.seconds
    count = counted(window, {cpu: Spun(busy_s, there.shown)})
    spinner = (there.thread.pid, there.thread.tid)
    return Spinning(window, {tick_count.cpu: tick_count for tick_count in count}, {}, spinner)


def measure_spinning(root: Sysroot, cpus: CpuSet, window_s: float, intrude: bool = False) -> Spinning:
    """The counters while tunectl-probe spins on `cpus`, and the timer interrupts that it counted from within.

    The probe reads the interrupts itself, when it begins to spin and when it ends: however long it takes to start, its
    counts are those of its own time. On another root than the running host's there is nothing to spin on: the
    counters are taken as they move, and a CPU that did not idle counts as one that spun.
    """
    if not cpus:
        unknown("no isolated CPU is online: there is nowhere to spin")
    if not root.live:
        window = measure(root, window_s)
        idle = {cpu: window.idle_share(cpu) for cpu in cpus}
        shares = {cpu: share for cpu, share in idle.items() if share is not None}
        spun = {cpu: Spun((1 - share) * window.seconds, "a thread") for cpu, share in shares.items()}
        return Spinning(window, {tick_count.cpu: tick_count for tick_count in counted(window, spun)})
    before = read_counters(root)
    try:
        result = run_jitter(cpus, window_s, intrude=intrude)
    except TunectlError as error:
        unknown(f"no spinner on {named_cpus(cpus)}: {error.message}", of_text(error.hint or ""))
    window = Window(before, read_counters(root, last=True))
    left = {left_out.cpu: left_out.reason for left_out in result.not_measured}
    return Spinning(window, {tick_count.cpu: tick_count for tick_count in counted_by_probe(result)}, left)


def timers_under_spinner(root: Sysroot, cpu: int, *, taken: bool = False) -> list[str]:
    """A second look at a CPU whose timer interrupts did not stop: the functions of the timers that are set there soon.

    Where the CPU is `taken`, a thread of somebody else spins there, and nothing of ours. Nothing where /proc/timer_list
    cannot be read (it is root's), or where nothing of ours can spin.
    """
    if not root.live or not root.get_text(TIMER_LIST):
        return []
    soon: dict[str, None] = {}
    with ThreadPoolExecutor(1, "tunectl-spinner") as pool:
        spinning: Future[object]
        if taken:
            spinning = pool.submit(time.sleep, _SECOND_LOOK_S)
        else:
            spinning = pool.submit(run_jitter, frozenset({cpu}), _SECOND_LOOK_S)
        while not spinning.done():
            armed = parse_timer_list(root.get_text(TIMER_LIST))
            soon.update(dict.fromkeys(soon_on(cpu, armed)))
            time.sleep(_LOOK_S)
    return list(soon) if spinning.exception() is None else []


def soon_on(cpu: int, armed: Iterable[Armed]) -> list[str]:
    """The functions of the timers that may come ten times a second or more often. Pure."""
    return [one.function for one in armed if one.cpu == cpu and one.in_ns <= _SOON_NS]
