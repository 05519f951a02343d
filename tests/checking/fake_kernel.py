"""A recorded host that runs: counters in /proc rise as time passes, as a kernel's do, while a check looks on.

Its time is a clock of its own. It passes while somebody sleeps, and at no other time: nothing waits, and no load on
this machine can make a counter stand still or a window grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import pytest

from tunectl.host.procs import PF_KTHREAD, PF_NO_SETAFFINITY

KTHREAD, BOUND = PF_KTHREAD, PF_KTHREAD | PF_NO_SETAFFINITY


@dataclass
class Row:
    """One line of /proc/interrupts: what arrives in a second on each CPU."""

    name: str
    description: str
    per_s: Mapping[int, float] = field(default_factory=dict)


@dataclass
class Process:
    """One thread: where it runs, where it may, and how much of the time it does."""

    pid: int
    comm: str
    cpu: int
    allowed: str
    busy: float = 0.0
    flags: int = 0
    visits_per_s: float = 0.0  # how often it is put on the CPU
    policy: int = 0
    rt_priority: int = 0
    files: Mapping[str, str] = field(default_factory=dict)  # more of /proc/PID: cgroup, status, numa_maps
    opened: Sequence[str] = ()  # what its descriptors point to
    slept_per_s: float = 0.0
    minor_per_s: float = 0.0
    major_per_s: float = 0.0
    waits: float = 0.0  # share of the time it was ready and did not run, as counted
    state: str = ""  # instead of what `busy` makes of it
    ends_s: float = 1e9  # from then on another thread has its id
    tracer: int = 0  # the process that traces it
    later: str = ""  # where it may run from one second on, instead of `allowed`
    of: int = 0  # the process whose thread this is; without it, it is a process of its own


class Clock:
    """Python's own clock from `with` to its end: it passes while somebody sleeps, and then calls `at_each` moment."""

    running = False

    def __init__(self, at_each: Callable[[float], None] = lambda _: None) -> None:
        self._at_each = at_each
        self._start_s = self._now_s = time.monotonic()
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Clock:
        self._patch.setattr(time, "monotonic", lambda: self._now_s)
        self._patch.setattr(time, "sleep", self._sleep)
        Clock.running = True
        self._at_each(0.0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        Clock.running = False
        self._patch.undo()

    def _sleep(self, seconds: float) -> None:
        self._now_s += seconds
        self._at_each(self._now_s - self._start_s)


@dataclass
class FakeKernel:
    """Runs from `with` to its end."""

    root: Path
    cpus: Sequence[int]
    rows: list[Row] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    busy_cpus: frozenset[int] = frozenset()
    slices_per_s: Mapping[int, float] = field(default_factory=dict)  # what /proc/schedstat counts, of these CPUs
    clocksources: tuple[str, ...] = ("tsc",)  # one after the other, a tenth of a second each; the last one stays

    def __enter__(self) -> FakeKernel:
        self._clock = Clock(self._write)
        self._clock.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._clock.__exit__(kind, error, tb)

    def _write(self, age_s: float) -> None:
        self._put("proc/interrupts", self._interrupts(age_s))
        idle = {cpu: 0 if cpu in self.busy_cpus else int(age_s * 100) for cpu in self.cpus}
        lines = [f"cpu{cpu} 0 0 0 {1000 + idle[cpu]} 0 0 0 0 0 0" for cpu in self.cpus]
        self._put("proc/stat", "\n".join(["cpu  0 0 0 0 0 0 0 0 0 0", *lines, ""]))
        clock = self.clocksources[min(int(age_s * 10), len(self.clocksources) - 1)]
        self._put("sys/devices/system/clocksource/clocksource0/current_clocksource", f"{clock}\n")
        counted = [
            f"cpu{cpu} 0 0 0 0 0 0 1 1 {500 + int(per_s * age_s)}\ndomain0 0f 0"
            for cpu, per_s in self.slices_per_s.items()
        ]
        self._put("proc/schedstat", "\n".join(["version 15", "timestamp 4294967295", *counted, ""]))
        for process in self.processes:
            self._write_process(process, age_s)

    def _interrupts(self, age_s: float) -> str:
        lines = ["      " + "".join(f"{'CPU' + str(cpu):>10} " for cpu in self.cpus)]
        everywhere = Row("CAL", "Function call interrupts", {self.cpus[0]: 50.0})  # some CPU always does something
        if any(row.name == everywhere.name for row in self.rows):
            everywhere = Row("MCP", "Machine check polls", everywhere.per_s)
        for row in [*self.rows, everywhere]:
            cells = "".join(f"{1000 + int(row.per_s.get(cpu, 0.0) * age_s):>10} " for cpu in self.cpus)
            lines.append(f"{row.name:>4}: {cells}  {row.description}")
        return "\n".join([*lines, "ERR:          0", ""])

    def _write_process(self, process: Process, age_s: float) -> None:
        owner = process.of or process.pid
        place = f"proc/{owner}/task/{process.pid}"
        state = process.state or ("R" if process.busy > 0.5 else "S")
        minor, major, slept = (int(n * age_s) for n in (process.minor_per_s, process.major_per_s, process.slept_per_s))
        began = 100 if age_s < process.ends_s else 101
        ticks = 5 + int(process.busy * age_s * 100)
        # proc(5): flags is field 9, utime 14, processor 39
        front = f"{process.pid} ({process.comm}) {state} 1 0 0 0 -1 {process.flags} {minor} 0 {major} 0 {ticks} 2"
        how = [str(process.rt_priority), str(process.policy)]  # fields 40 and 41
        rest = ["0", "0", "20", "0", "1", "0", str(began), *["0"] * 15, "17", str(process.cpu), *how, *["0"] * 11]
        self._put(f"{place}/stat", f"{front} {' '.join(rest)}\n")
        if not process.of:
            self._put(f"proc/{owner}/stat", f"{front} {' '.join(rest)}\n")
            self._put(f"proc/{owner}/comm", f"{process.comm}\n")
        for name, text in process.files.items():
            self._put(f"proc/{owner}/{name}", text)
        for number, target in enumerate(process.opened):
            link = self.root / f"proc/{owner}/fd/{number}"
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(target)
        run_ns = int((0.05 + process.busy * age_s) * 1e9)
        self._put(
            f"{place}/schedstat",
            f"{run_ns} {1000 + int(process.waits * age_s * 1e9)} {10 + int(process.visits_per_s * age_s)}\n",
        )
        allowed = process.later if process.later and age_s >= 1 else process.allowed
        status = (
            f"Name:\t{process.comm}\nTracerPid:\t{process.tracer}\n"
            f"Cpus_allowed_list:\t{allowed}\nvoluntary_ctxt_switches:\t{7 + slept}\n"
        )
        self._put(f"{place}/status", status)

    def _put(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
