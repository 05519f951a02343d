"""When a process began: with its id that names it, since ids are used again. Of /proc alone, and so cheap to import."""

from __future__ import annotations

from tunectl.host.sysroot import Sysroot


def read_start(root: Sysroot, pid: int | str) -> str:
    """In clock ticks since boot, as it stands in /proc/PID/stat (field 22); "" once it has ended. Never raises."""
    fields = root.get(f"proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""
