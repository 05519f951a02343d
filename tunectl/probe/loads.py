"""The loads that isolation has to stand: a row says what stress-ng does, and what it proves. Pure.

To add one: a row here. The arguments have to exist in stress-ng 0.13 and later. A stressor that listens on a port
(sock, udp), that moves itself to other CPUs, or whose memory or files no argument bounds, is none for this table.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tunectl.errors import UsageError

ALL = "all"
NONE = "none"
_MANY = 8  # instances, at most one for each CPU: more neither fill a memory bus nor tell anything new


class Load(NamedTuple):
    """One load. `memory_mib` and `disk_mib` are what an instance takes at most."""

    stressor: str  # stress-ng's name, and the option with the number of instances
    words: tuple[str, ...]
    proves: str
    memory_mib: int
    disk_mib: int = 0
    most: int = _MANY  # instances
    needs_root: bool = False


LOADS: dict[str, Load] = {
    "memory": Load(
        "stream",
        ("--stream-l3-size", "4M"),
        "memory bandwidth and the shared cache: interruptions, which run with cold caches, do not become longer",
        memory_mib=64,
    ),
    "faults": Load(
        "fault",
        (),
        "page faults and mappings that come and go: work of the memory management (reclaim, TLB flushes, RCU) stays on "
        "the CPUs that caused it",
        memory_mib=16,
        disk_mib=1,
    ),
    "files": Load(
        "hdd",
        ("--hdd-bytes", "32M", "--hdd-opts", "wr-seq,rd-seq,fdatasync"),
        "writing and syncing files: the writeback threads, the journal and the disk's interrupts stay away",
        memory_mib=16,
        disk_mib=32,
        most=1,
    ),
    "network": Load(
        "rawsock",
        (),
        "packets over the loopback: the softirqs of the network stack run where the packets are sent",
        memory_mib=16,
        needs_root=True,
    ),
    "timers": Load(
        "timer",
        ("--timer-freq", "10000"),
        "10,000 timers a second and their signals: no timer is armed on an isolated CPU for somebody else",
        memory_mib=16,
    ),
}
CHOICES = (*LOADS, ALL, NONE)


def chosen(names: Iterable[str], where: str) -> tuple[str, ...]:
    """The loads of these names, in the table's order; `all` is every one, `none` no one. UsageError for another."""
    asked = [name.strip() for name in names]
    for name in asked:
        if name not in CHOICES:
            raise UsageError(f"{where}: there is no load '{name}'", f"one of {', '.join(CHOICES)}")
    if NONE in asked and len(asked) > 1:
        raise UsageError(f"{where}: '{NONE}' stands alone", f"'{NONE}', or the loads")
    if not asked:
        raise UsageError(f"{where}: no load is named", f"one of {', '.join(CHOICES)}")
    return tuple(name for name in LOADS if name in asked or ALL in asked)


def instances(name: str, cpus: int) -> int:
    """How many of a load run on so many CPUs."""
    return min(LOADS[name].most, cpus)


def words(names: Sequence[str], cpus: int) -> list[str]:
    """What stress-ng is told: all these loads at once."""
    made: list[str] = []
    for name in names:
        made += [f"--{LOADS[name].stressor}", str(instances(name, cpus)), *LOADS[name].words]
    return made


def needs_mib(names: Sequence[str], cpus: int) -> tuple[int, int]:
    """Memory and disk that all of them take at most, in MiB."""
    rows = [(LOADS[name], instances(name, cpus)) for name in names]
    return sum(row.memory_mib * many for row, many in rows), sum(row.disk_mib * many for row, many in rows)
