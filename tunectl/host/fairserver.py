"""The scheduler's fair server: what it gives to ordinary threads on a CPU that real-time threads keep for themselves.

/sys/kernel/debug/sched/fair_server/cpuN/runtime and period, in nanoseconds; of root only, and as the kernel's default
after each boot. Both are read from memory: no other CPU answers. Source: kernel/sched/debug.c (6.12),
sched_fair_server_show() and sched_fair_server_write(); commit "sched/fair: Fair server interface" (in v6.12).
"""

import errno
from contextlib import suppress
from typing import NamedTuple

from tunectl import kinds
from tunectl.cpulist import CpuSet
from tunectl.fix import NOTHING, Fix, to_type
from tunectl.host.symbols import has_symbol
from tunectl.host.sysroot import Sysroot

_DEBUGFS = "sys/kernel/debug"
DIRECTORY = f"{_DEBUGFS}/sched/fair_server"
_MOUNT = to_type(kinds.mount_debugfs())
RUNTIME = f"{DIRECTORY}/cpu{{cpu}}/runtime"
_FUNCTION = "dl_server_start"  # the kernel has the function wherever it has fair servers


class FairServer(NamedTuple):
    """Whom it may stop."""

    exists: bool | None  # does this kernel have one? None where nobody can tell
    runtime_ns: tuple[tuple[int, int], ...] = ()  # (CPU, nanoseconds a period), of the CPUs asked about
    problem: str = ""  # why these are not known
    remedy: Fix = NOTHING  # the command that shows them, where root need only mount the file system
    closed: bool = False  # not even root may read them


def read_fair_server(root: Sysroot, cpus: CpuSet) -> FairServer:
    """Of these CPUs. Never raises."""
    if root.exists(DIRECTORY):
        return _read_runtimes(root, cpus)
    # Without root, or with debugfs switched off: the kernel's list of symbols is open to all.
    exists = False if root.exists("sys/kernel/debug/sched") else has_symbol(root, _FUNCTION)
    if exists is False:
        return FairServer(False)
    with suppress(OSError):  # where something is mounted, root alone can list it
        if not root.names(_DEBUGFS):
            return FairServer(exists, problem=f"debugfs is not mounted on /{_DEBUGFS}", remedy=_MOUNT)
    return FairServer(exists, problem=f"/{DIRECTORY} cannot be read")


def may_serve(root: Sysroot, cpu: int) -> bool | None:
    """Does a fair server serve on this CPU? None where nobody can tell. Never raises."""
    server = read_fair_server(root, frozenset({cpu}))
    if server.exists and server.runtime_ns:
        return server.runtime_ns[0][1] > 0
    return False if server.exists is False else None


def _read_runtimes(root: Sysroot, cpus: CpuSet) -> FairServer:
    found = []
    for cpu in sorted(cpus):
        path = RUNTIME.format(cpu=cpu)
        try:
            found.append((cpu, int(root.read_value(path))))
        except ValueError:
            return FairServer(True, problem=f"/{path} holds no number")
        except OSError as error:
            # Who may not enter debugfs was sent back before; the files are closed to root by lockdown alone.
            locked = error.errno == errno.EPERM
            why = "the kernel's lockdown closes debugfs, to root too" if locked else error.strerror
            return FairServer(True, problem=f"/{path}: {why}", closed=locked)
    return FairServer(True, tuple(found))
