"""Memory management that stops a thread to do its work."""

from tunectl.knobs.codecs import CHOICE, NATURAL, SWITCH, WORD, mapped
from tunectl.knobs.drivers.hugepages import PAGES, HugePages
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.drivers.swap import Swap, judge_swap
from tunectl.knobs.row import Absence, Knob
from tunectl.model import Match, Severity

# run=2 stopped ksmd too, and unmerged what it had merged.
_KSM = mapped("ksm", {"0": "stopped", "1": "running", "2": "stopped"}, {"stopped": "0", "running": "1"})
_THP = "sys/kernel/mm/transparent_hugepage"
_THP_SOURCE = "Documentation/admin-guide/mm/transhuge.rst"


def _pages(name: str, size_kib: int, why: str, risk: str) -> Knob:
    return Knob(
        f"mm.{name}",
        HugePages(size_kib),
        PAGES,
        Severity.STALL,
        match=Match.AT_LEAST,
        why=f"{why} A site's choice: only it knows how much its engine maps.",
        source="Documentation/admin-guide/mm/hugetlbpage.rst",
        risk=risk,
    )


KNOBS = (
    Knob(
        "mm.thp_enabled",
        PseudoFile(f"{_THP}/enabled", choices=f"{_THP}/enabled"),
        CHOICE,
        Severity.STALL,
        why="khugepaged and huge page faults copy and remap memory behind the application, with TLB shootdowns that "
        "interrupt every CPU the process runs on.",
        source=_THP_SOURCE,
        risk="more TLB misses in programs that profited; applies to new mappings",
    ),
    Knob(
        "mm.thp_defrag",
        PseudoFile(f"{_THP}/defrag", choices=f"{_THP}/defrag"),
        CHOICE,
        Severity.STALL,
        why="A page fault that asks for a huge page may have to compact memory first, for milliseconds.",
        source=_THP_SOURCE,
        boots_with="madvise",
    ),
    Knob(
        "mm.ksm",
        PseudoFile("sys/kernel/mm/ksm/run"),
        _KSM,
        Severity.INTERRUPT,
        why="ksmd merges equal pages: a later write to one faults and copies.",
        source="Documentation/admin-guide/mm/ksm.rst",
        risk="more memory on hosts with many equal virtual machines",
        absence=Absence(harmless="a kernel without it merges no pages"),
        boots_with="stopped",
    ),
    Knob(
        "mm.swappiness",
        PseudoFile("proc/sys/vm/swappiness"),
        NATURAL,
        Severity.STALL,
        match=Match.AT_MOST,
        why="A page that was swapped out costs a disk read on the next touch.",
        source="Documentation/admin-guide/sysctl/vm.rst",
        boots_with=60,
    ),
    Knob(
        "mm.swap",
        Swap(),
        WORD,
        Severity.STALL,
        judge=judge_swap,
        why="A page of an engine that was swapped out comes back from a disk, which takes milliseconds.",
        source="Documentation/admin-guide/mm/concepts.rst; swapoff(8)",
        risk="without swap, a host that runs out of memory ends a process at once",
    ),
    Knob(
        "mm.numa_balancing",
        PseudoFile("proc/sys/kernel/numa_balancing"),
        SWITCH,
        Severity.INTERRUPT,
        why="Automatic NUMA balancing unmaps pages to see who touches them: page faults, TLB shootdowns and "
        "migrations for memory that is already placed by hand.",
        source="Documentation/admin-guide/sysctl/kernel.rst",
        absence=Absence(harmless="a kernel without it samples no memory"),
    ),
    _pages(
        "hugepages_2mib",
        2048,
        "A huge page that was reserved early is there when the engine maps it, on its own node, and never moves: no "
        "fault that compacts memory, one TLB entry for 2 MiB.",
        "the memory is no longer there for anything else",
    ),
    _pages(
        "hugepages_1gib",
        1048576,
        "One TLB entry for 1 GiB. Reserved while the host runs they need a GiB in one piece: early, or not at all.",
        "the memory is no longer there for anything else; reserving may take seconds of compaction",
    ),
)
