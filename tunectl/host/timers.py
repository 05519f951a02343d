"""What may interrupt a CPU by its timer: /proc/timer_list, and the CPU clocks of a process in /proc/PID/timers.

Both are read from memory. /proc/timer_list is root's; the kernel holds the lock of a CPU's timers for as long as it
looks one of them up (kernel/time/timer_list.c), so it is read only where the tick is already known not to be off.
"""

import re
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

TIMER_LIST = "proc/timer_list"
# tick_sched_timer until 6.7, tick_nohz_handler since (kernel/time/tick-sched.c).
TICK = frozenset({"tick_sched_timer", "tick_nohz_handler"})
PERF_CLOCK = "perf_swevent_hrtimer"  # kernel/events/core.c: cpu-clock, task-clock
_CPU = re.compile(r"cpu: (\d+)$")
_TIMER = re.compile(r" #\d+: <[^>]*>, ([\w.]+)")
_EXPIRES = re.compile(r" # expires at .*\[in (-?\d+) to -?\d+ nsecs\]")
# include/uapi/linux/time.h; a negative number is the CPU clock of one process or thread.
_CPU_CLOCKS = (2, 3)


class Armed(NamedTuple):
    """A high-resolution timer that is set on a CPU: what it calls, and in how many nanoseconds."""

    cpu: int
    function: str
    in_ns: int


def parse_timer_list(text: str) -> list[Armed]:
    """Every timer that is set, CPU by CPU. A line that is none is skipped."""
    timers: list[Armed] = []
    cpu, function = -1, ""
    for line in text.splitlines():
        if header := _CPU.match(line):
            cpu = int(header[1])
        elif timer := _TIMER.match(line):
            function = timer[1]
        elif (when := _EXPIRES.match(line)) and function and cpu >= 0:
            timers.append(Armed(cpu, function, int(when[1])))
            function = ""
    return timers


def has_cpu_timer(root: Sysroot, pid: int) -> bool:
    """Has a process a timer on its CPU time, by timer_create(2)? One by setitimer(2) is shown nowhere. Never raises."""
    clocks = [line.partition(":")[2] for line in root.get_text(f"proc/{pid}/timers").splitlines() if "ClockID" in line]
    numbers = [int(clock) for clock in clocks if clock.strip().lstrip("-").isdecimal()]
    return any(clock < 0 or clock in _CPU_CLOCKS for clock in numbers)
