"""Which CPUs there are, and how this boot divided them: what every command needs, and cheap to read.

No file is read here that interrupts an isolated CPU (docs/kernel-facts.md).
"""

from typing import NamedTuple

from tunectl.cpulist import CpuSet, parse_shown
from tunectl.errors import TunectlError, UsageError
from tunectl.host.cgroup import partitioned
from tunectl.host.sysroot import Sysroot

_CPU = "sys/devices/system/cpu"
ISOLATED = f"{_CPU}/isolated"  # every kernel since 4.0 has it
NOHZ_FULL = f"{_CPU}/nohz_full"


class CpuFacts(NamedTuple):
    """Which CPUs there are and how this boot divided them. `siblings`: the CPUs of each online CPU's core."""

    present: CpuSet
    online: CpuSet
    nr_cpus: int  # the kernel's nr_cpu_ids: one more than the last possible CPU
    kernel_isolated: CpuSet  # isolcpus=domain, as far as present; empty for isolcpus=nohz or managed_irq alone
    nohz_full: CpuSet  # as far as present
    siblings: dict[int, CpuSet]
    partitioned: CpuSet = frozenset()  # in an isolated partition of control group v2

    @property
    def quiet(self) -> CpuSet:
        """The CPUs that are isolated in one way or another: nothing of ours interrupts them."""
        return self.kernel_isolated | self.nohz_full | self.partitioned


def read_scope_facts(root: Sysroot) -> CpuFacts:
    """The CPU sets and the sibling groups: five files and one a core.

    Raises TunectlError where the tree holds no CPU at all: it is no recorded host.
    """
    present, online = _set(root, "present"), _set(root, "online")
    if not present:
        names = (name[3:] for name in root.listdir(_CPU) if name.startswith("cpu"))
        present = online | frozenset(int(name) for name in names if name.isdecimal())
    if not present:
        hint = "is /sys mounted?" if root.live else "--root takes a snapshot, unpacked"
        raise TunectlError(f"no CPUs are described in {root.path(_CPU)}", hint)
    online = (online & present) or present
    siblings: dict[int, CpuSet] = {}
    for cpu in sorted(online):
        if cpu in siblings:  # the kernel's sibling masks are symmetric: one file a core is enough
            continue
        # Not core_cpus_list: its name came with 5.3 (and EL8 lacks it), the content is the same.
        core = _set(root, f"cpu{cpu}/topology/thread_siblings_list") & online | {cpu}
        siblings.update((member, core) for member in core if member not in siblings)
    # The kernel lists possible CPUs there, of which a guest often has more than are present.
    isolated, nohz_full = _set(root, "isolated") & present, _set(root, "nohz_full") & present
    held = partitioned(root)
    nr_cpus = max(_set(root, "possible") | present) + 1
    return CpuFacts(present, online, nr_cpus, isolated, nohz_full, siblings, held)


def read_cpu_list(root: Sysroot, path: str) -> CpuSet:
    """The CPUs of a file that holds a CPU list; empty where the file is missing or holds no list."""
    return shown_cpus(root.get(path))


def shown_cpus(text: str) -> CpuSet:
    """The same of the file's text."""
    try:
        return parse_shown(text)
    except UsageError:
        return frozenset()


def _set(root: Sysroot, name: str) -> CpuSet:
    return read_cpu_list(root, f"{_CPU}/{name}")
