"""The isolated CPUs as a cgroup-v2 partition: the scheduler balances nothing onto them, and no reboot is needed.

Source: Documentation/admin-guide/cgroup-v2.rst, "Cpuset Interface Files"; kernel/cgroup/cpuset.c, update_prstate().
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.otherreaders import taking_v2
from tunectl.command import as_data
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.host.cpusets import ISOLATED, read_cpu_list
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.codecs import CPULIST, WORD, Codec
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, State

ROOT = "sys/fs/cgroup"
# A slice of systemd's, so that the operator's units can live in it (Slice=isolated.slice); its cgroup has its name.
SLICE = "isolated.slice"
CGROUP = f"{ROOT}/{SLICE}"
_CONTROL = f"{ROOT}/cgroup.subtree_control"
_CPUS, PARTITION_FILE = f"{CGROUP}/cpuset.cpus", f"{CGROUP}/cpuset.cpus.partition"
_EFFECTIVE = f"{CGROUP}/cpuset.cpus.effective"
# A partition that became invalid shows "isolated invalid (why)"; writing `isolated` again is what restores it.
PARTITION = WORD._replace(name="partition", encode=lambda value: str(value).partition(" ")[0])


def _enabled(text: str) -> bool:
    return "cpuset" in text.replace("+", " ").split()


def _no_wish(value: Any, scope: Any) -> Any:
    raise ValueError("not a knob of its own")


# cgroup.subtree_control shows the controllers that are on, and takes "+name" and "-name".
CONTROLLER = Codec(
    "controller",
    "true or false",
    _enabled,
    lambda value: "+cpuset" if value else "-cpuset",
    lambda value: "on" if value else "off",
    _no_wish,
)


class PartitionFacts(NamedTuple):
    """What the judge needs beside the CPUs that are isolated now."""

    problem: str  # why this host cannot have a partition; "" where it can
    shown: str  # cpuset.cpus.partition: member, root, isolated, isolated invalid (why); "" without a cgroup
    cpus: CpuSet  # cpuset.cpus, what was asked for
    online: CpuSet
    others: tuple[str, ...]  # sibling control groups that ask for one of the CPUs by name
    boot: CpuSet = frozenset()  # what this boot's isolcpus= isolates; a partition does not change it


class IsolatedPartition:
    """The control group `isolated.slice`, as an isolated partition of the root."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading: the CPUs the partition isolates now, none where there is no valid one."""
        root = view.root
        shown = root.get(PARTITION_FILE).strip()
        problem = lack_of(root)
        if not problem and root.exists(_CPUS) and not root.exists(PARTITION_FILE):
            problem = f"this kernel has no /{PARTITION_FILE}"
        cpus = read_cpu_list(root, _CPUS)
        effective = read_cpu_list(root, _EFFECTIVE) if shown == "isolated" else frozenset[int]()
        others = _others(root, want or frozenset())
        facts = PartitionFacts(problem, shown, cpus, view.scope.online, others, read_cpu_list(root, ISOLATED))
        yield Reading(knob.name, "", State.READ, effective, facts=facts)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The controller, the group, its CPUs, then the partition. Each is looked at when its turn comes."""
        root = view.root
        for _, change in batch:
            if change.value is None:
                yield Step("value", PARTITION_FILE, "member", (change,), PARTITION)
                yield Step("value", _CPUS, "", (change,), CPULIST)
                continue
            if not _enabled(root.get(_CONTROL)):
                yield Step("value", _CONTROL, "+cpuset", (change,), CONTROLLER)
            if not root.exists(CGROUP):
                yield Step("directory", CGROUP, "directory", (change,))
            if read_cpu_list(root, _CPUS) != change.value:
                yield Step("value", _CPUS, CPULIST.encode(change.value), (change,), CPULIST)
            if " invalid" in root.get(PARTITION_FILE):
                # Up to 6.6 the kernel leaves an invalid partition as it is, for whatever word but this one.
                yield Step("value", PARTITION_FILE, "member", (change,), PARTITION)
            if root.get(PARTITION_FILE).strip() != "isolated":
                yield Step("value", PARTITION_FILE, "isolated", (change,), PARTITION)

    def stands(self, root: Sysroot) -> bool:
        """Is a partition of ours there? Ours is the one whose slice we wrote."""
        ours = root.get_text(f"etc/systemd/system/{SLICE}").startswith("# Written by `tunectl apply`")
        return ours and root.get(PARTITION_FILE).startswith("isolated")

    def describe(self) -> tuple[str, ...]:
        """The files of the control group."""
        return tuple("/" + path for path in (PARTITION_FILE, _CPUS, _EFFECTIVE, _CONTROL))

    def reads(self) -> tuple[str, ...]:
        """These files, the controllers that the kernel offers, and the CPUs that other control groups name."""
        groups = (f"{ROOT}/cgroup.controllers", f"{ROOT}/*/cpuset.cpus")
        return (PARTITION_FILE, _CPUS, _EFFECTIVE, _CONTROL, ISOLATED, *groups, f"etc/systemd/system/{SLICE}")


def lack_of(root: Sysroot) -> str:
    """Why this host can give no control group CPUs of its own; "" where it can."""
    if not root.exists(f"{ROOT}/cgroup.controllers"):
        word = taking_v2(parse_cmdline(root.get_text("proc/cmdline")))
        return f"there is no cgroup v2 hierarchy at /{ROOT}" + (f": this boot had {as_data(word)}" if word else "")
    if "cpuset" not in root.get(f"{ROOT}/cgroup.controllers").split():
        return "the kernel does not offer the cpuset controller to cgroup v2 (not built in, or taken by cgroup v1)"
    return ""


def _others(root: Sysroot, want: CpuSet) -> tuple[str, ...]:
    """Other control groups of the first level that name one of the CPUs. A partition must have its CPUs to itself."""
    names = sorted(name for name in root.listdir(ROOT) if name != SLICE)
    claims = ((name, read_cpu_list(root, f"{ROOT}/{name}/cpuset.cpus") & want) for name in names)
    return tuple(f"{as_data(name)} ({format_cpulist(cpus)})" for name, cpus in claims if cpus)
