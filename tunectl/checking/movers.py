"""What makes the kernel move or merge pages of running processes: each move is a TLB shootdown and a page fault."""

from __future__ import annotations

from tunectl.fix import Fix, to_type
from tunectl.host.sysroot import Sysroot

# It does where the file says one of these.
_MOVERS = {"proc/sys/kernel/numa_balancing": "123", "sys/kernel/mm/ksm/run": "1"}


def page_movers(root: Sysroot) -> list[tuple[str, Fix]]:
    """Each that is on, in words, and what ends it."""
    return [
        (f"/{path} is {value}: the kernel moves or merges pages of processes", to_type(f"echo 0 | sudo tee /{path}"))
        for path, on in _MOVERS.items()
        if (value := root.get(path)) and value in on
    ]
