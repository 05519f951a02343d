"""What a kernel shows elsewhere once an attribute is written. Pure but for looking whether the files are there.

A recorded host has no kernel: when one of its attributes is written, the files that a kernel would
change along with it are written too, so that the recording goes on telling one story.
"""

from __future__ import annotations

import re

from tunectl.cpulist import format_cpumask, parse_cpulist
from tunectl.host.sysroot import Sysroot

_IRQ = re.compile(r"(proc/irq/\d+)/smp_affinity_list")


def echoes(root: Sysroot, path: str, text: str) -> list[tuple[str, str]]:
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
    return [(other, content) for other, content in found if root.exists(other)]
