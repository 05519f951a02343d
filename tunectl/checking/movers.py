"""What makes the kernel move or merge pages of running processes: each move is a TLB shootdown and a page fault."""

from __future__ import annotations

from tunectl import kinds
from tunectl.fix import Fix, to_type
from tunectl.host.sysroot import Sysroot

# It does where the file says one of these.
_MOVERS = {
    "proc/sys/kernel/numa_balancing": ("123", to_type(kinds.stop_numa_balancing())),
    "sys/kernel/mm/ksm/run": ("1", to_type(kinds.stop_merging_pages())),
}


def page_movers(root: Sysroot) -> list[tuple[str, Fix]]:
    """Each that is on, in words, and what ends it."""
    return [
        (f"/{path} is {value}: the kernel moves or merges pages of processes", stop)
        for path, (on, stop) in _MOVERS.items()
        if (value := root.get(path)) and value in on
    ]
