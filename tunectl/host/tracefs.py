"""The kernel's tracing as it stands: tracefs, its global trace and its instances. Root's to read.

Nothing here interrupts a CPU: these files show what is in memory. Source: Documentation/trace/ftrace.rst, events.rst,
kprobetrace.rst; Documentation/trace/kprobes.rst (/sys/kernel/debug/kprobes/list).

A trace of our own in tracefs, beside the global one, which is not touched. It ends with the `with` that made it.

Its name says whose it is: the process, and when that started. What a killed process leaves is swept away by the next
command of root's, whichever that is (cli/command.py).

To switch an event on or off the kernel patches its own code, and on x86 interrupts every CPU for that, a few times
(arch/x86/kernel/alternative.c, text_poke_bp_batch): nobody may be at work on the isolated CPUs meanwhile.
Source: Documentation/trace/ftrace.rst (Instances), events.rst.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tunectl.cpulist import CpuSet, format_cpumask
from tunectl.host.attribute import write_attribute
from tunectl.host.identity import read_start
from tunectl.host.sysroot import Sysroot

_PLACES = ("sys/kernel/tracing", "sys/kernel/debug/tracing")
_KPROBES = "sys/kernel/debug/kprobes/list"
_STACK = "proc/sys/kernel/stack_tracer_enabled"
# "ffffffffa1 k do_nanosleep+0x0 [FTRACE]"; a probe that is off says DISABLED, one whose module went away GONE.
_ARMED = re.compile(r"\S+\s+[kr]\s+(\S+?)(?:\+0x[0-9a-f]+)?(?:\s|$)(?!.*\[(?:DISABLED|GONE)\])")
_OURS = re.compile(r"tunectl-(\d+)-(\d+)")


class Trace(NamedTuple):
    """One trace: the global one, whose name is "", or an instance."""

    name: str
    path: str  # from the root, without a leading slash
    tracer: str
    events: tuple[str, ...]  # group:event, those that are on

    @property
    def on(self) -> bool:
        """Does anything in the kernel work for this trace?"""
        return self.tracer not in ("", "nop") or bool(self.events)


class Tracing(NamedTuple):
    """All of it. `probes` are those of kprobe_events and uprobe_events, as group:event by file name, on or off."""

    place: str
    traces: tuple[Trace, ...]
    probes: tuple[tuple[str, str], ...]
    profiled: bool  # function_profile_enabled
    stack: bool  # kernel.stack_tracer_enabled
    armed: tuple[str, ...]  # functions with an armed kprobe, whoever armed it


def read_tracing(root: Sysroot) -> Tracing | None:
    """What is traced; None where no tracefs is mounted. PermissionError where it is not ours to see."""
    place = find_place(root)
    if place is None:
        return None
    # Of a directory that may not be entered nothing is known: the first file tells.
    tracer = root.read_value(f"{place}/current_tracer")
    instances = sorted(root.listdir(f"{place}/instances"))
    traces = [Trace("", place, tracer, _events(root, place))]
    for name in instances:
        path = f"{place}/instances/{name}"
        if not _lives(root, name):
            traces.append(Trace(name, path, root.get(f"{path}/current_tracer"), _events(root, path)))
    probes = []
    for file in ("kprobe_events", "uprobe_events"):
        lines = [line.split() for line in root.get_text(f"{place}/{file}").splitlines()]
        names = [words[0].partition(":")[2] for words in lines if words]
        probes += [(file, name.replace("/", ":")) for name in names if name]  # `p:kprobes/mine do_nanosleep`
    profiled = root.get(f"{place}/function_profile_enabled") == "1"
    armed = [match[1] for line in root.get_text(_KPROBES).splitlines() if (match := _ARMED.match(line))]
    return Tracing(place, tuple(traces), tuple(probes), profiled, root.get(_STACK) == "1", tuple(dict.fromkeys(armed)))


def find_place(root: Sysroot) -> str | None:
    """Where tracefs is mounted, from the root; None where it is not. Never raises.

    By the table of mounts first: the kernel mounts debug/tracing for whoever looks into it.
    """
    mounts = (line.split() for line in root.get_text("proc/mounts").split("\n"))
    points = [words[1].lstrip("/") for words in mounts if len(words) > 2 and words[2] == "tracefs"]
    if points or root.live:
        return points[0] if points else None
    return next((place for place in _PLACES if root.exists(f"{place}/current_tracer")), None)


def _events(root: Sysroot, path: str) -> tuple[str, ...]:
    return tuple(root.get_text(f"{path}/set_event").split())


def _lives(root: Sysroot, name: str) -> bool:
    """Is it the instance of a process of ours that runs: tunectl-PID-START, with the start of that process?"""
    match = _OURS.fullmatch(name)
    return match is not None and read_start(root, match[1]) == match[2]


_ATTEMPTS = 50  # a reader of one of its files makes the kernel refuse to take the instance away
_PAUSE_S = 0.02


class TraceInstance:
    """One instance; `below` is its directory, from the root."""

    def __init__(self, root: Sysroot, below: str) -> None:
        self._root = root
        self._below = below
        self.path = root.path(below)

    def text(self) -> str:
        """What it has recorded."""
        return self.read("trace")

    def read(self, name: str) -> str:
        """One of its files. OSError where the kernel refuses."""
        return self._root.read_text(f"{self._below}/{name}")

    def write(self, name: str, text: str) -> None:
        """One write into one of its files. OSError where the kernel refuses."""
        write_attribute(os.open(f"{self.path}/{name}", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC), text.encode())

    def switch(self, on: bool) -> None:
        """Records from now on, or no more."""
        self.write("tracing_on", "1" if on else "0")

    def confine(self, cpus: CpuSet) -> None:
        """Records what happens on these CPUs, and nowhere else."""
        self.write("tracing_cpumask", format_cpumask(cpus))


class OwnInstance(TraceInstance):
    """One that this process makes, off, and removes. OSError where it cannot be made."""

    def __init__(self, root: Sysroot, place: str) -> None:
        """`place` is where tracefs is mounted."""
        super().__init__(root, f"{place}/instances/tunectl-{os.getpid()}-{read_start(root, 'self')}")
        os.mkdir(self.path, 0o700)
        try:
            self.switch(False)
            # While it is open nobody can take the instance away, as somebody in another PID namespace would.
            self._held = os.open(f"{self.path}/tracing_on", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            _remove(self.path)
            raise

    def remove(self) -> None:
        """OSError where somebody reads one of its files, and goes on."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
        with suppress(OSError):
            self.write("events/enable", "0")
        _remove(self.path)


class TracePipe:
    """The pages of one CPU's buffer, as they are. Reading never waits, and the CPU that writes is not told."""

    _PAGE = 1 << 16  # at least: the kernel hands out one page at a time

    def __init__(self, instance: TraceInstance, cpu: int) -> None:
        self._fd = os.open(
            f"{instance.path}/per_cpu/cpu{cpu}/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )

    def take(self) -> bytes:
        """The next page, as far as it is written; empty where there is none now."""
        try:
            return os.read(self._fd, self._PAGE)
        except OSError:  # EAGAIN; and nothing can be done about others
            return b""

    def close(self) -> None:
        """More than once is no harm."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def sweep(root: Sysroot) -> None:
    """Removes the instances of processes that are no more. Cheap where there is none. Never raises.

    Should the owner live after all, in a PID namespace that is not seen here, the kernel refuses: it holds a file open.
    """
    place = find_place(root)
    for name in root.listdir(f"{place}/instances") if place else ():
        if _OURS.fullmatch(name) and not _lives(root, name):
            with suppress(OSError):
                os.rmdir(root.path(f"{place}/instances/{name}"))


def mark(root: Sysroot, text: str) -> bool:
    """Writes a line into the host's main trace, where somebody traces there; says whether. Never raises."""
    with suppress(OSError):
        tracing = read_tracing(root)
        if tracing is None or not tracing.traces[0].on or root.get(f"{tracing.place}/tracing_on") != "1":
            return False
        marker = root.path(f"{tracing.place}/trace_marker")
        write_attribute(os.open(marker, os.O_WRONLY | os.O_CLOEXEC), text.encode())
        return True
    return False


def events_of(root: Sysroot, place: str, wanted: Sequence[str]) -> list[str]:
    """Those events, as group/event, that this kernel has. Never raises."""
    return [event for event in wanted if root.exists(f"{place}/events/{event}/enable")]


@contextmanager
def trace_instance(root: Sysroot, place: str, events: Sequence[str], cpus: CpuSet) -> Iterator[TraceInstance]:
    """An instance that will record these events, group/event, where they happen on `cpus`. OSError where it cannot be.

    `place` is where tracefs is mounted. It records once it is switched on, and is gone at the end.
    """
    instance = OwnInstance(root, place)
    try:
        instance.confine(cpus)
        for event in events:
            instance.write(f"events/{event}/enable", "1")
        yield instance
    finally:
        instance.remove()


def _remove(path: str) -> None:
    for _ in range(_ATTEMPTS):
        with suppress(OSError):
            os.rmdir(path)
            return
        time.sleep(_PAUSE_S)
    os.rmdir(path)
