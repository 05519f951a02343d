"""Words of the kernel's command line that leave a machine with fewer CPUs. Pure.

Source: Documentation/admin-guide/kernel-parameters.txt (maxcpus, nosmp, nosmt, nolapic, possible_cpus); kernel/smp.c;
kernel/cpu.c, smt_cmdline_disable(); lib/cmdline.c, get_option().
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tunectl.bootloader.cmdline import Arg, kernel_args, same_key
from tunectl.cpulist import CpuSet

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
_ONE_CPU = ("nosmp", "nolapic", "disableapic")
_POSSIBLE = ("nr_cpus", "possible_cpus")  # each one that is lower than what stood before it counts


def taken_cpus(args: Iterable[Arg], cpus: CpuSet, secondary: CpuSet) -> dict[Arg, CpuSet]:
    """By word, those of `cpus` that a boot with this command line starts without; `secondary`: not the first of a core.

    maxcpus= leaves them off until somebody switches them on, nosmt until the next boot; with the others there are none.
    """
    found: dict[Arg, CpuSet] = {}
    limit: Arg | None = None
    for arg in kernel_args(args):
        number = _NUMBER.match(arg.value or "")
        if any(same_key(arg.key, key) for key in _ONE_CPU):
            found[arg] = _from(cpus, 1)
        elif any(same_key(arg.key, key) for key in _POSSIBLE) and number and int(number[0], 0):
            found[arg] = _from(cpus, int(number[0], 0))
        elif same_key(arg.key, "maxcpus") and number:  # the last one counts, and 0 is nosmp
            limit = arg
        elif same_key(arg.key, "nosmt"):
            found[arg] = cpus & secondary
    if limit:
        found[limit] = _from(cpus, max(int((_NUMBER.match(limit.value or "") or ["1"])[0], 0), 1))
    return {arg: lost for arg, lost in found.items() if lost}


def _from(cpus: CpuSet, first: int) -> CpuSet:
    return frozenset(cpu for cpu in cpus if cpu >= first)
