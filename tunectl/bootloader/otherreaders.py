"""Words of the kernel's command line that systemd reads, and what they override. Pure.

docs/kernel-facts.md, "Words for other readers", has all of them as a table, those that change nothing of ours, too.
systemd reads the whole line, behind a `--`, too, takes the last of several, and leaves `rd.` words to the initrd
(src/basic/proc-cmdline.c). The words that say where a boot goes are knobs/drivers/bootgoal.py's.

Source: kernel-command-line(7); systemd(1), KERNEL COMMAND LINE; systemd's src/basic/cgroup-util.c, the function
cg_is_unified_wanted(); NEWS 256 (a boot with version 1 is refused without SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1) and 258
(version 1 is gone, and nobody reads the word); src/core/main.c, parse_proc_cmdline_item().
"""

from collections.abc import Iterable

from tunectl.bootloader.cmdline import Arg, same_key
from tunectl.cpulist import CpuSet, parse_spaced
from tunectl.errors import UsageError

AFFINITY = "systemd.cpu_affinity"  # overrides CPUAffinity= of system.conf and its drop-ins
HIERARCHY = "systemd.unified_cgroup_hierarchy"  # where it is false, version 1 of control groups is mounted
# Where a false systemd.unified_cgroup_hierarchy= is read no more.
WITHOUT_V1 = 258
_FALSE = ("0", "no", "n", "false", "f", "off")


def manager_cpus(args: Iterable[Arg]) -> tuple[Arg, CpuSet] | None:
    """The word that says which CPUs systemd starts everything on, and these; None where CPUAffinity= decides.

    A value that is no list is ignored, and so is an empty one; an earlier word is not: each is parsed in its turn.
    """
    decided: tuple[Arg, CpuSet] | None = None
    for arg in args:
        if same_key(arg.key, AFFINITY) and arg.value:
            try:
                cpus = parse_spaced(arg.value)
            except UsageError:
                continue
            decided = arg, cpus
    return decided


def taking_v2(args: Iterable[Arg]) -> Arg | None:
    """The word with which systemd mounts control groups version 1, or does not start at all (256 and 257 unforced)."""
    words = [arg for arg in args if same_key(arg.key, HIERARCHY)]
    return words[-1] if words and (words[-1].value or "").lower() in _FALSE else None
