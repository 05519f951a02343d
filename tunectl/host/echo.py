"""What a kernel shows elsewhere once an attribute is written. Pure but for looking whether the files are there.

A recorded host has no kernel: when one of its attributes is written, the files that a kernel would
change along with it are written too, so that the recording goes on telling one story.
"""

from __future__ import annotations

import re

from tunectl.cpulist import format_cpulist, format_cpumask, parse_cpulist, parse_shown
from tunectl.host.sysroot import Sysroot

_CPU = re.compile(r"sys/devices/system/cpu/cpu(\d+)/online")
_ONLINE = "sys/devices/system/cpu/online"
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
    if cpu := _CPU.fullmatch(path):
        online = parse_shown(root.get(_ONLINE)) - {int(cpu[1])} | ({int(cpu[1])} if text == "1" else set())
        found = [(_ONLINE, format_cpulist(online))]
    return [(other, content) for other, content in found if root.exists(other)]


def as_shown(root: Sysroot, path: str, text: str) -> str:
    """How a kernel would show the written word: in brackets among the choices, where the file lists them."""
    words = [word.strip("[]") for word in root.get(path).split()]
    if "[" not in root.get(path) or text not in words:
        return text
    return " ".join(f"[{word}]" if word == text else word for word in words)
