"""Which functions the running kernel has, by /proc/kallsyms: its names are open to all, its addresses are not.

The list is megabytes long and is never held as a whole: the monitor's peak would be 50 MB and not 39, and glibc gives
back less of what is freed once it has seen so large a piece (mallopt(3), M_MMAP_THRESHOLD).
"""

from functools import lru_cache

from tunectl.host.sysroot import Sysroot


@lru_cache(maxsize=4)
def has_symbol(root: Sysroot, begin: str) -> bool | None:
    """Is there a symbol that begins so? None where nothing can be read. Never raises.

    Once for a root: of a boot's kernel the list is always the same, but for its modules.
    """
    wanted, tail = f" {begin}".encode(), b""
    try:
        for part in root.parts("proc/kallsyms"):
            if wanted in (joined := tail + part):
                return True
            tail = joined[-len(wanted) :]
    except OSError:
        return None
    return False if tail else None
