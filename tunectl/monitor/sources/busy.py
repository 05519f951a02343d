"""How busy each CPU was between two looks. /proc/stat, the lines of each CPU (fs/proc/stat.c)."""

from __future__ import annotations

from collections.abc import Iterable

from tunectl.host.sysroot import Sysroot

_IDLE = (3, 4)  # idle and iowait, of user nice system idle iowait irq softirq steal ...


class Busy:
    """The shares since the last refresh() but one."""

    def __init__(self, root: Sysroot) -> None:
        self._root = root
        self._before: dict[int, tuple[int, int]] = {}
        self._now: dict[int, tuple[int, int]] = {}

    def refresh(self, cpus: Iterable[int]) -> None:
        """Reads it, for these CPUs. Never raises."""
        self._before, self._now = self._now, parse(self._root.get_text("proc/stat"), cpus)

    def share(self, cpu: int) -> float:
        """0 to 1; 0 where it is not known."""
        if cpu not in self._before or cpu not in self._now:
            return 0.0
        (busy, total), (busy_then, total_then) = self._now[cpu], self._before[cpu]
        return (busy - busy_then) / (total - total_then) if total > total_then else 0.0


def parse(text: str, cpus: Iterable[int]) -> dict[int, tuple[int, int]]:
    """{CPU: (busy, all)} in clock ticks since boot; a CPU that is off has no line."""
    found = {}
    for cpu in cpus:
        start = text.find(f"\ncpu{cpu} ")
        fields = text[start : text.find("\n", start + 1)].split()[1:9] if start >= 0 else []
        if len(fields) > max(_IDLE) and all(map(str.isdecimal, fields)):
            times = [int(field) for field in fields]
            total = sum(times)
            found[cpu] = (total - sum(times[index] for index in _IDLE), total)
    return found
