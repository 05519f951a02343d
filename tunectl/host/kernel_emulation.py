"""What a kernel shows elsewhere once an attribute is written. Pure but for looking whether the files are there.

A recorded host has no kernel: when one of its attributes is written, the files that a kernel would
change along with it are written too, so that the recording stays consistent.
"""

import re
from typing import NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist, format_cpumask, parse_cpulist, parse_shown
from tunectl.host.scheduling import ALLOWED
from tunectl.host.sysroot import Sysroot

_CPU = re.compile(r"sys/devices/system/cpu/cpu(\d+)/online")
_ONLINE = "sys/devices/system/cpu/online"
_CGROUP = "sys/fs/cgroup/"
_CPUSET = re.compile(rf"({_CGROUP}.+)/cpuset\.cpus(\.partition)?")
_EFFECTIVE = "cpuset.cpus.effective"
_IRQ = re.compile(r"(proc/irq/\d+)/smp_affinity_list")


class Write(NamedTuple):
    """One write to one path."""

    kind: str  # as in a journal's record: value, file, directory, ...
    path: str
    content: str


def writes(root: Sysroot, write: Write) -> list[Write]:
    """The write as a kernel would show it, then the other files that a kernel would change or make with it."""
    if write.kind == "value":
        other = [Write("value", path, text) for path, text in _elsewhere(root, write.path, write.content)]
        return [write._replace(content=_as_shown(root, write.path, write.content)), *other]
    if write.kind == "directory":
        return [write, *(Write("file", path, text) for path, text in _inside(root, write.path))]
    if write.kind == "scheduling":  # of a process's first thread there are two such files
        process = write.path.split("/")[1]
        task = f"proc/{process}/task/{process}/stat"
        return [write, *([write._replace(path=task)] if root.exists(task) else [])]
    return [write]


def with_affinity(status: str, cpus: str) -> str:
    """The status file of a thread, as a kernel would show it once the thread may use these CPUs (a cpulist)."""
    lines = status.splitlines(keepends=True)
    return "".join(f"{ALLOWED}\t{cpus}\n" if line.startswith(ALLOWED) else line for line in lines)


def _elsewhere(root: Sysroot, path: str, text: str) -> list[tuple[str, str]]:
    """The other files a kernel would change for this write: (path, text), those that exist only."""
    found: list[tuple[str, str]] = []
    if irq := _IRQ.fullmatch(path):
        width = len(root.get(f"{irq[1]}/smp_affinity").split(",")) * 32
        mask = format_cpumask(parse_cpulist(text), nr_cpus=width)
        found = [
            (f"{irq[1]}/effective_affinity_list", text),
            (f"{irq[1]}/smp_affinity", mask),
            (f"{irq[1]}/effective_affinity", mask),
        ]
    if cpu := _CPU.fullmatch(path):
        online = parse_shown(root.get(_ONLINE)) - {int(cpu[1])} | ({int(cpu[1])} if text == "1" else set())
        found = [(_ONLINE, format_cpulist(online))]
    if cgroup := _CPUSET.fullmatch(path):
        found = _partitioned(root, cgroup[1], text) if cgroup[2] else _confined(root, cgroup[1], text)
    return [(other, content) for other, content in found if root.exists(other)]


def _confined(root: Sysroot, cgroup: str, text: str) -> list[tuple[str, str]]:
    """A control group was given CPUs, or (for "") its parent's; a partition keeps those that it took from there."""
    above = parse_shown(root.get(f"{cgroup.rpartition('/')[0]}/{_EFFECTIVE}"))
    if root.get(f"{cgroup}/cpuset.cpus.partition").startswith("isolated"):
        above |= parse_shown(root.get(f"{cgroup}/{_EFFECTIVE}"))
    return [(f"{cgroup}/{_EFFECTIVE}", format_cpulist(parse_cpulist(text) & above if text else above))]


def _partitioned(root: Sysroot, cgroup: str, text: str) -> list[tuple[str, str]]:
    """An isolated partition takes its CPUs from its parent and from its siblings."""
    if text != "isolated":
        return []
    parent = cgroup.rpartition("/")[0]
    own: CpuSet = parse_shown(root.get(f"{cgroup}/{_EFFECTIVE}"))
    others = [parent, *(f"{parent}/{name}" for name in root.listdir(parent) if f"{parent}/{name}" != cgroup)]
    left = [(f"{other}/{_EFFECTIVE}", parse_shown(root.get(f"{other}/{_EFFECTIVE}")) - own) for other in others]
    return [(path, format_cpulist(cpus)) for path, cpus in left if cpus]


def _inside(root: Sysroot, path: str) -> list[tuple[str, str]]:
    """What a kernel puts into a new control group. It has files for CPUs where its parent has that controller on."""
    parent = path.rpartition("/")[0]
    if not path.startswith(_CGROUP) or "cpuset" not in root.get(f"{parent}/cgroup.subtree_control").split():
        return []
    effective = root.get(f"{parent}/{_EFFECTIVE}")
    files = {"cgroup.procs": "", "cgroup.subtree_control": "\n", "cpuset.cpus": "\n", _EFFECTIVE: f"{effective}\n"}
    return [(f"{path}/{name}", text) for name, text in {**files, "cpuset.cpus.partition": "member\n"}.items()]


def _as_shown(root: Sysroot, path: str, text: str) -> str:
    """How a kernel would show the written word: in brackets among the choices, where the file lists them."""
    if path.endswith("/cgroup.subtree_control"):
        on = set(root.get(path).split())
        return " ".join(sorted(on | {text[1:]} if text.startswith("+") else on - {text[1:]}))
    words = [word.strip("[]") for word in root.get(path).split()]
    if "[" not in root.get(path) or text not in words:
        return text
    return " ".join(f"[{word}]" if word == text else word for word in words)
