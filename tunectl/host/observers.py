"""Who has the kernel run something at its events: BPF programs and perf events, by the descriptors that hold them.

Neither shows in tracefs: an event that BPF or perf listens to has an `enable` of 0. They run on every CPU where the
event happens. Nothing here touches a CPU: /proc/PID/fd and fdinfo are the kernel's memory. A link that is pinned in
bpffs lasts without a process: root can have a descriptor of it and ask that, which changes nothing of the link.
Source: proc_pid_fdinfo(5); bpf(2), BPF_OBJ_GET; kernel/bpf/inode.c (bpf_obj_get_user); kernel/bpf/syscall.c
(bpf_prog_show_fdinfo, bpf_link_show_fdinfo, bpf_raw_tp_link_show_fdinfo, bpf_tracing_link_show_fdinfo);
include/uapi/linux/bpf.h for the numbers.
"""

import ctypes
import os
import re
import struct
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from tunectl.host.openfiles import Holder
from tunectl.host.sysroot import Sysroot

# The names of the descriptors: of older kernels and newer ones.
DESCRIPTORS = r"anon_inode:\[?(?:perf_event|bpf[-_]prog|bpf_link|bpf-raw-tracepoint)\]?"
_LINKS = frozenset({"raw_tracepoint", "tracing", "perf", "kprobe_multi", "uprobe_multi"})
# BPF_LSM_MAC: a rule of access, as systemd has them (RestrictFileSystems=), and no observer.
_LSM = "27"
_BPFFS = "sys/fs/bpf"
_OBJ_GET = 7
_SYSCALLS = {"x86_64": 321, "aarch64": 280}  # bpf(2)
_MOST = 4096  # pinned objects that are looked at
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


class Pin(NamedTuple):
    """A link to a program that stands in bpffs: its path, with a leading slash, and the kind as in Observer.links."""

    path: str
    link: str


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
        if link := _link_of(info):
            links.append(link)
        if "raw-tracepoint" in descriptor:  # before 5.7 it was no link
            links.append(f"raw_tracepoint {info.get('tp_name', '')}".strip())
        if info.get("prog_type") in _AT_PERF_EVENTS:
            programs.append(_AT_PERF_EVENTS[info["prog_type"]])
    threads = len(root.listdir(f"{place}/task"))
    return Observer(holder, tuple(sorted(set(links))), tuple(sorted(set(programs))), perf_events, threads)


def _link_of(info: Mapping[str, str]) -> str:
    """What a link has its program run at; "" where it is none, or observes nothing."""
    observes = info.get("link_type") in _LINKS and info.get("attach_type") != _LSM
    return f"{info['link_type']} {info.get('tp_name', '')}".strip() if observes else ""


def read_pins(root: Sysroot, place: str = _BPFFS) -> list[Pin]:
    """The links that are pinned below `place`, as root sees them on the host itself. Never raises."""
    if not root.live:
        return []
    pins, number = [], ctypes.c_long(_SYSCALLS.get(os.uname().machine, -1))
    for path in islice(root.walk(place), _MOST):
        name = ctypes.create_string_buffer(os.fsencode(root.path(path)))
        asked = struct.pack("=QII", ctypes.addressof(name), 0, 0)
        fd: int = ctypes.CDLL(None).syscall(number, ctypes.c_int(_OBJ_GET), asked, ctypes.c_uint(len(asked)))
        if fd < 0:  # it is a directory, or this user may not
            continue
        try:
            link = _link_of(_fields(root.get_text(f"proc/{os.getpid()}/fdinfo/{fd}")))
        finally:
            os.close(fd)
        if link:
            pins.append(Pin(f"/{path}", link))
    return pins


def _fields(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key: value.strip() for key, _, value in lines}
