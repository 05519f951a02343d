"""Who has the kernel run something at its events: BPF programs and perf events, by the descriptors that hold them.

Neither shows in tracefs: an event that BPF or perf listens to has an `enable` of 0. They run on every CPU where the
event happens. Nothing here touches a CPU: /proc/PID/fd and fdinfo are the kernel's memory. What is pinned in bpffs and
held by no process does not show here.
Source: proc_pid_fdinfo(5); kernel/bpf/syscall.c (bpf_prog_show_fdinfo, bpf_link_show_fdinfo,
bpf_raw_tp_link_show_fdinfo, bpf_tracing_link_show_fdinfo); include/uapi/linux/bpf.h for the numbers.
"""

import re
from typing import NamedTuple

from tunectl.host.openfiles import Holder
from tunectl.host.sysroot import Sysroot

# The names of the descriptors: of older kernels and newer ones.
DESCRIPTORS = r"anon_inode:\[?(?:perf_event|bpf[-_]prog|bpf_link|bpf-raw-tracepoint)\]?"
_LINKS = frozenset({"raw_tracepoint", "tracing", "perf", "kprobe_multi", "uprobe_multi"})
# BPF_LSM_MAC: a rule of access, as systemd has them (RestrictFileSystems=), and no observer.
_LSM = "27"
# BPF_PROG_TYPE_*, of those that are attached to a perf event.
_AT_PERF_EVENTS = {"2": "kprobe", "5": "tracepoint", "7": "perf_event"}


class Observer(NamedTuple):
    """A process that holds BPF programs or perf events, and how many threads it has."""

    holder: Holder
    links: tuple[str, ...]  # what BPF programs are attached to, "raw_tracepoint sched_switch"
    programs: tuple[str, ...]  # the kinds of those that a perf event runs: "kprobe", "tracepoint", "perf_event"
    perf_events: int
    threads: int

    @property
    def runs_programs(self) -> bool:
        """Does the kernel run a program of its at some event?"""
        return bool(self.links or (self.programs and self.perf_events))

    def watches_all(self, cpus: int) -> bool:
        """Has it a perf event for each of so many CPUs, and too few threads for them to be its threads' own?"""
        return self.perf_events >= cpus > self.threads


def read_observers(root: Sysroot, holders: tuple[Holder, ...]) -> list[Observer]:
    """What those of the holders have that hold DESCRIPTORS. Never raises."""
    found = (_of(root, holder) for holder in holders if any(re.fullmatch(DESCRIPTORS, name) for name in holder.files))
    return [observer for observer in found if observer.links or observer.programs or observer.perf_events]


def _of(root: Sysroot, holder: Holder) -> Observer:
    place = f"proc/{holder.pid}"
    links, programs, perf_events = list[str](), list[str](), 0
    for number in root.listdir(f"{place}/fd"):
        descriptor = root.readlink(f"{place}/fd/{number}")
        if not re.fullmatch(DESCRIPTORS, descriptor):
            continue
        perf_events += "perf_event" in descriptor
        info = _fields(root.get_text(f"{place}/fdinfo/{number}"))
        if info.get("link_type") in _LINKS and info.get("attach_type") != _LSM:
            links.append(f"{info['link_type']} {info.get('tp_name', '')}".strip())
        if "raw-tracepoint" in descriptor:  # before 5.7 it was no link
            links.append(f"raw_tracepoint {info.get('tp_name', '')}".strip())
        if info.get("prog_type") in _AT_PERF_EVENTS:
            programs.append(_AT_PERF_EVENTS[info["prog_type"]])
    threads = len(root.listdir(f"{place}/task"))
    return Observer(holder, _each(links), _each(programs), perf_events, threads)


def _fields(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key: value.strip() for key, _, value in lines}


def _each(names: list[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))
