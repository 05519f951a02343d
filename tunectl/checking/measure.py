"""Watches the host for a while: once as it is, once with a spinner on the isolated CPUs."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tunectl.checking.outcomes import unknown
from tunectl.checking.window import Window, read_counters
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.errors import TunectlError
from tunectl.host.sysroot import Sysroot
from tunectl.probe.runner import run_jitter

STILL = "the counters stand still: a recorded host does not run"
# A running host's timers fire within this time, on any kernel and however idle it is.
_FIRST_SIGN_S = 0.1
# The probe starts, locks its memory and calibrates: a moment on hardware, a second or two on an emulated CPU. It is
# given this long, is watched until it spins, and spins until the window is over.
_SETTLE_S = 2.5
_LOOK_S = 0.2
_SPINS = 0.1  # share of the time a CPU idles, at most, once it spins
_MARGIN_S = 0.5


def measure(root: Sysroot, window_s: float) -> Window:
    """The counters over `window_s` seconds. Settled as unknown where nothing on this host moves."""
    before = read_counters(root)
    if not before.interrupts.rows:
        unknown(f"{root.path('proc/interrupts')} cannot be read, or is empty")
    started = time.monotonic()
    if not root.live:
        first = root.get_text("proc/interrupts")
        time.sleep(min(_FIRST_SIGN_S, window_s))
        if root.get_text("proc/interrupts") == first:
            unknown(STILL)
    time.sleep(max(window_s - (time.monotonic() - started), 0.0))
    window = Window(before, read_counters(root, last=True))
    if window.still:
        unknown(STILL)
    return window


def measure_spinning(root: Sysroot, cpus: CpuSet, window_s: float) -> Window:
    """The counters while tunectl-probe spins on `cpus`.

    On another root than the running host's there is nothing to spin on: the counters are taken as they move, and
    whether a CPU was kept busy is then theirs to say (Window.idle_share).
    """
    if not cpus:
        unknown("no isolated CPU is online: there is nowhere to spin")
    if not root.live:
        return measure(root, window_s)
    with ThreadPoolExecutor(1, "tunectl-spinner") as pool:
        spinning = pool.submit(run_jitter, cpus, window_s + _SETTLE_S + _MARGIN_S)
        _wait_for(root, cpus, spinning)
        window = measure(root, window_s) if not spinning.done() else None
        _finish(spinning, cpus)
    if window is None:
        unknown(f"tunectl-probe ended early on CPUs {format_cpulist(cpus)}")
    return window


def _wait_for(root: Sysroot, cpus: CpuSet, spinning: Future[dict[str, Any]]) -> None:
    """Until the CPUs have stopped idling, or the time for that is over."""
    deadline = time.monotonic() + _SETTLE_S - _LOOK_S
    while time.monotonic() < deadline and not spinning.done():
        before = read_counters(root)
        time.sleep(_LOOK_S)
        look = Window(before, read_counters(root, last=True))
        if all((look.idle_share(cpu) or 0.0) < _SPINS for cpu in cpus):
            return


def _finish(spinning: Future[dict[str, Any]], cpus: CpuSet) -> None:
    try:
        spinning.result()
    except TunectlError as error:
        unknown(f"no spinner on CPUs {format_cpulist(cpus)}: {error.message}", error.hint or "")
