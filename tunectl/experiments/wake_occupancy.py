"""Who had the receiver's CPU while a case was measured, from what the kernel said before and after. Pure."""

from __future__ import annotations

from typing import NamedTuple

from tunectl.experiments.wake_facts import Account, RawCase, RawWake

_RAN, _SLICES = 7, 9  # fields of a cpu line of /proc/schedstat (Documentation/scheduler/sched-stats.rst)
_IDLE, _STEAL = 4, 8  # of /proc/stat (proc(5)): idle, iowait, irq, softirq, steal; the rest is tasks' time


class Occupancy(NamedTuple):
    """Of all tasks, and of them the probe's own threads; `*_slices`: how often they were put there, None: unknown."""

    elapsed_ns: float
    cpu_ns: float
    own_ns: int
    own_slices: int
    cpu_slices: int | None
    step_ns: float  # cpu_ns is counted in steps of this; 0: in ns


def occupancy(case: RawCase, run: RawWake) -> Occupancy | None:
    """None where the kernel counted nothing, or what it said cannot be read."""
    before, after = case.before, case.after
    if before is None or after is None or after.ticks <= before.ticks:
        return None
    elapsed_ns = (after.ticks - before.ticks) * 1e9 / run.clock.hz
    ran, slices = (last - first for first, last in zip(_own(before, run), _own(after, run), strict=True))
    first, last = (_fields(one.line("/proc/schedstat", run.cpus[1])) for one in (before, after))
    if min(len(first), len(last)) > _SLICES:
        counted = last[_SLICES] - first[_SLICES]
        return Occupancy(elapsed_ns, last[_RAN] - first[_RAN], ran, slices, counted, 0)
    first, last = (_fields(one.line("/proc/stat", run.cpus[1])) for one in (before, after))
    if min(len(first), len(last)) <= _STEAL:
        return None
    step_ns = 1e9 / run.facts.user_hz
    others = sum(last[_IDLE : _STEAL + 1]) - sum(first[_IDLE : _STEAL + 1])
    # Idle time is counted to the ns where the kernel stops its tick, while tasks are charged whole ticks.
    return Occupancy(elapsed_ns, elapsed_ns - others * step_ns, ran, slices, None, step_ns)


def _own(account: Account, run: RawWake) -> tuple[int, int]:
    """CPU time and runs of our threads that are on the receiver's CPU."""
    is_one_cpu = run.cpus[0] == run.cpus[1]
    present = 1 if not is_one_cpu else 3 if run.facts.shares_main else 2
    counts = [[0, *_fields(f"- {line}")[1:]] for line in account.threads[:present]]  # ran, waited, slices
    return sum(of[1] for of in counts if len(of) > 3), sum(of[3] for of in counts if len(of) > 3)


def _fields(line: str) -> list[int]:
    """The numbers behind the first word, each at its place from 1; empty where one is none."""
    words = line.split()[1:]
    return [0, *map(int, words)] if words and all(word.isascii() and word.isdigit() for word in words) else []
