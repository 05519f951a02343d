"""The kernel's tracing as it stands: tracefs, its global trace and its instances. Root's to read.

Nothing here interrupts a CPU: these files show what is in memory. Source: Documentation/trace/ftrace.rst, events.rst,
kprobetrace.rst; Documentation/trace/kprobes.rst (/sys/kernel/debug/kprobes/list).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tunectl.host.started import read_start
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
    probes = [
        (file, event) for file in ("kprobe_events", "uprobe_events") for event in _probes(root, f"{place}/{file}")
    ]
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


def left_instances(root: Sysroot) -> list[str]:
    """The instances of processes of ours that are no more, as paths from the root. Never raises."""
    place = find_place(root)
    if place is None:
        return []
    names = (name for name in root.listdir(f"{place}/instances") if _OURS.fullmatch(name))
    return [f"{place}/instances/{name}" for name in names if not _lives(root, name)]


def _events(root: Sysroot, path: str) -> tuple[str, ...]:
    return tuple(root.get_text(f"{path}/set_event").split())


def _probes(root: Sysroot, path: str) -> list[str]:
    """`p:kprobes/mine do_nanosleep` is the event kprobes:mine."""
    names = (line.split()[0].partition(":")[2] for line in root.get_text(path).splitlines() if line.strip())
    return [name.replace("/", ":") for name in names if name]


def _lives(root: Sysroot, name: str) -> bool:
    """Is it the instance of a process of ours that runs: tunectl-PID-START, with the start of that process?"""
    match = _OURS.fullmatch(name)
    return match is not None and read_start(root, match[1]) == match[2]
