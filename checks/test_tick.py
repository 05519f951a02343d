"""The scheduler's tick on the isolated CPUs."""

import pytest

from tunectl.checking import failing, unknown, unsupported
from tunectl.checking.judges import IDLE, TICKS_PER_S, some, ticks_per_s
from tunectl.checking.window import Window
from tunectl.host.cpusets import CpuFacts

_CAUSES = "a second runnable thread, a POSIX CPU timer, perf events, or the deadline server (fair server) since 6.8"


def test_tick_off(isolated_cpu: int, cpu_facts: CpuFacts, request: pytest.FixtureRequest) -> None:
    """The tick interrupts a thread 100 to 1000 times a second; with nohz_full in force, one that is alone has none.

    A spinner runs on the CPU and the local timer interrupts are counted: what the boot line asks for is no proof.
    Source: Documentation/timers/no_hz.rst; kernel/time/tick-sched.c (tick_dep_mask); kernel/sched/deadline.c.
    """
    if isolated_cpu not in cpu_facts.nohz_full:
        unsupported(f"nohz_full is not in force on CPU {isolated_cpu}: its tick never stops under a running thread")
    window: Window = request.getfixturevalue("spinner_window")
    rate = ticks_per_s(window, isolated_cpu)
    idle = window.idle_share(isolated_cpu)
    if rate is None or idle is None:
        unknown(f"this host does not count the timer interrupts or the idle time of CPU {isolated_cpu}")
    if rate > TICKS_PER_S:
        beside = [run.thread for run in window.runs if run.ran and run.thread.cpu == isolated_cpu]
        others = [f"{thread.comm} (pid {thread.pid})" for thread in beside]
        likely = f"it shared the CPU with {some(others)}" if others else f"likely causes: {_CAUSES}"
        failing(
            f"CPU {isolated_cpu} took {rate:.0f} timer interrupts a second under a spinner; {likely}",
            f"leave one runnable thread on CPU {isolated_cpu}, no CPU timers and no perf events; on 6.8 and newer, "
            f"echo 0 > /sys/kernel/debug/sched/fair_server/cpu{isolated_cpu}/runtime",
            observed=round(rate, 1),
            desired=TICKS_PER_S,
        )
    if idle > IDLE:
        unknown(f"nothing spun on CPU {isolated_cpu}, it idled {idle:.0%} of the time: an idle CPU has no tick anyway")
