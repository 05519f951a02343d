"""How busy each CPU was between two looks. /proc/stat, the lines of each CPU (fs/proc/stat.c)."""

from __future__ import annotations

from tunectl.host.sysroot import Sysroot

_IDLE = (3, 4)  # idle and iowait, of user nice system idle iowait irq softirq steal ...


class Busy:
    """The shares since the last refresh() but one."""

    def __init__(self, root: Sysroot) -> None:
        self._root = root
        self._before: dict[int, tuple[int, int]] = {}
        self._now: dict[int, tuple[int, int]] = {}

    def refresh(self) -> None:
        """Reads it. Never raises."""
        self._before, self._now = self._now, parse(self._root.get_text("proc/stat"))

    def share(self, cpu: int) -> float:
        """0 to 1; 0 where it is not known."""
        if cpu not in self._before or cpu not in self._now:
            return 0.0
        (busy, total), (busy_then, total_then) = self._now[cpu], self._before[cpu]
        return (busy - busy_then) / (total - total_then) if total > total_then else 0.0


def parse(text: str) -> dict[int, tuple[int, int]]:
    """{CPU: (busy, all)} in clock ticks since boot."""
    found = {}
    for line in text.split("\nintr", 1)[0].split("\n"):
        name, *fields = line.split()[:9] or [""]
        if name.startswith("cpu") and name[3:].isdecimal() and len(fields) >= 5:
            times = [int(field) for field in fields]
            total = sum(times)
            found[int(name[3:])] = (total - sum(times[index] for index in _IDLE), total)
    return found
