"""Words of the kernel's command line that leave a machine with fewer CPUs. Pure.

Source: Documentation/admin-guide/kernel-parameters.txt (maxcpus, nosmp, nosmt, nolapic, possible_cpus); kernel/smp.c;
kernel/cpu.c, smt_cmdline_disable(); lib/cmdline.c, get_option(); arch/x86/kernel/apic/apic.c, generic_processor_info()
(disable_cpu_apicid, which a later kernel does not know any more).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tunectl.bootloader.cmdline import Arg, kernel_args, same_key
from tunectl.cpulist import CpuSet

_NUMBER = re.compile(r"0[xX](?P<hex>[0-9a-fA-F]+)|0(?P<octal>[0-7]*)|(?P<decimal>[1-9][0-9]*)")
_ONE_CPU = ("nosmp", "nolapic", "disableapic")
_POSSIBLE = ("nr_cpus", "possible_cpus")  # each one that is lower than what stood before it counts


def taken_cpus(args: Iterable[Arg], cpus: CpuSet, secondary: CpuSet, of_apic: Mapping[int, int]) -> dict[Arg, CpuSet]:
    """By word, those of `cpus` that a boot with this command line starts without; `secondary`: not the first of a core.

    maxcpus= leaves them off until somebody switches them on, nosmt until the next boot; with the others there are none.
    `of_apic`: the CPU of each APIC ID, where the kernel knows disable_cpu_apicid=. Those behind that CPU move up, so
    that the last number is gone, too.
    """
    found: dict[Arg, CpuSet] = {}
    limit: Arg | None = None
    for arg in kernel_args(args):
        number = _number(arg.value or "")
        if any(same_key(arg.key, key) for key in _ONE_CPU):
            found[arg] = _from(cpus, 1)
        elif any(same_key(arg.key, key) for key in _POSSIBLE) and number:
            found[arg] = _from(cpus, number)
        elif same_key(arg.key, "maxcpus") and number is not None:  # the last one counts, and 0 is nosmp
            limit = arg
        elif same_key(arg.key, "nosmt"):
            found[arg] = cpus & secondary
        elif same_key(arg.key, "disable_cpu_apicid") and number is not None:  # the last one counts, and never CPU 0
            found = {one: lost for one, lost in found.items() if not same_key(one.key, arg.key)}
            found[arg] = cpus & {of_apic[number], max(cpus)} if of_apic.get(number) else frozenset()
    if limit:
        found[limit] = _from(cpus, max(_number(limit.value or "") or 0, 1))
    return {arg: lost for arg, lost in found.items() if lost}


def _number(value: str) -> int | None:
    """The number that a value begins with, as the kernel reads it: 0x for sixteen, 0 for eight; None for none."""
    found = _NUMBER.match(value)
    if not found:
        return None
    if found["decimal"]:
        return int(found["decimal"])
    return int(found["hex"], 16) if found["hex"] else int(found["octal"] or "0", 8)


def _from(cpus: CpuSet, first: int) -> CpuSet:
    return frozenset(cpu for cpu in cpus if cpu >= first)
