"""The memory of one process: what of it is locked, and on which NUMA nodes it lies.

Source: Documentation/filesystems/proc.rst; proc(5), numa_maps. None of it interrupts the process.
"""

import re
from contextlib import suppress
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

_NODE = re.compile(r"N(\d+)=(\d+)")
_PAGE = re.compile(r"kernelpagesize_kB=(\d+)")
_KIB = re.compile(r"^(VmLck|VmRSS):\s*(\d+) kB", re.MULTILINE)

# What mlockall() leaves out and nobody could lock or reclaim: rings of a device or socket, [vdso] (mm/mlock.c,
# VM_SPECIAL: io, pf, mm, de), and huge pages (ht), which stay where they are.
_UNLOCKABLE = frozenset({"io", "pf", "mm", "de", "ht"})
_MAPPING = re.compile(r"^Rss:\s*(\d+) kB$.*?^VmFlags:([^\n]*)", re.MULTILINE | re.DOTALL)


class Memory(NamedTuple):
    """Memory of one process that can be locked, KiB."""

    locked: int
    resident: int


def read_memory(root: Sysroot, pid: int) -> Memory | None:
    """Locked and resident memory; None where nothing says (a kernel thread, a recording).

    Mapping by mapping from /proc/PID/smaps, where that may be read; else the sums of /proc/PID/status: locked memory
    that was never touched counts there, and the ring of a packet socket, which cannot be locked, is resident.
    """
    with suppress(OSError):
        if memory := parse_smaps(root.read_text(f"proc/{pid}/smaps")):
            return memory
    sums = {name: int(kib) for name, kib in _KIB.findall(root.get_text(f"proc/{pid}/status"))}
    return Memory(sums.get("VmLck", 0), sums["VmRSS"]) if "VmRSS" in sums else None


def parse_smaps(text: str) -> Memory | None:
    """Of what is resident and can be locked, how much is; None for a text without a mapping."""
    mappings = [(int(kib), set(flags.split())) for kib, flags in _MAPPING.findall(text)]
    resident = sum(kib for kib, flags in mappings if not flags & _UNLOCKABLE)
    locked = sum(kib for kib, flags in mappings if "lo" in flags and not flags & _UNLOCKABLE)
    return Memory(locked, resident) if mappings else None


def read_pages(root: Sysroot, pid: int) -> dict[int, int]:
    """KiB of a process's own memory on each NUMA node. /proc/PID/numa_maps. OSError where it may not be read."""
    return parse_numa_maps(root.read_text(f"proc/{pid}/numa_maps"))


def parse_numa_maps(text: str) -> dict[int, int]:
    """KiB by node of what a process writes or shares as data; program text and libraries are left out.

    A mapping of a file counts where pages of it were written (anon=), or where the file is no file: /dev, huge pages.
    """
    kib: dict[int, int] = {}
    for line in text.split("\n"):
        words = line.split()
        file = next((word[5:] for word in words if word.startswith("file=")), "")
        own = any(word.startswith("anon=") for word in words) or "huge" in words or file.startswith("/dev/")
        if file and not own:
            continue
        page = _PAGE.search(line)
        for node, pages in _NODE.findall(line):
            kib[int(node)] = kib.get(int(node), 0) + int(pages) * (int(page[1]) if page else 4)
    return kib
